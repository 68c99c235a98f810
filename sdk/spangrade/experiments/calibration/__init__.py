"""Judges held against people: agreement, stability, a pass mark, and the error rates that correct what a judge counts."""

from spangrade.experiments.calibration.calibrating import Plan, calibrate, plan
from spangrade.experiments.calibration.correction import Corrected, ErrorRates
from spangrade.experiments.calibration.labels import read_labels
from spangrade.experiments.calibration.result import Calibration, read_calibration

__all__ = ["Calibration", "Corrected", "ErrorRates", "Plan", "calibrate", "plan", "read_calibration", "read_labels"]
