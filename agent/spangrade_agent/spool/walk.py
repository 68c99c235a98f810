"""Reads every page of a store: ``python walk.py FOLDER TABLE...``, exit code 0 when all of it is sound.

A program of its own, since LMDB ends the process (an assertion, a bus error) where it meets pages that are damaged or cut off.
It imports nothing of ours, so that it starts at once.
"""

import sys

import lmdb


def main(folder: str, *tables: str) -> None:
    """Walk; what is damaged raises, or ends the process."""
    env = lmdb.open(folder, readonly=True, lock=False, max_dbs=len(tables) + 1, readahead=True)
    with env.begin() as txn:
        for name, _ in txn.cursor():
            if name.decode() not in tables:
                continue
            for key, data in txn.cursor(db=env.open_db(name, txn=txn, create=False)):
                if len(key) != 8 or not isinstance(data, bytes):
                    sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
