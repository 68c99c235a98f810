"""The one style sheet, and the content policy that lets in this sheet and nothing else.

The policy names the sheet by its hash: no nonce to make per answer, and text that looked like a style would still not be
one. There is no script, no image, no font and no request to anywhere.
"""

import base64
import hashlib
from typing import Final

from spangrade_agent.page.markup import Html

# Colours are chosen for at least 4.5:1 on their ground, in both schemes; each verdict is told by a word as well.
CSS: Final = """
:root{color-scheme:light dark;--paper:#f6f5f1;--card:#fff;--ink:#1d2127;--soft:#5a6270;--line:#e2dfd8;--well:#f5f3ee;
--link:#274fc0;--pass:#12693c;--pass-g:#e0f3e7;--fail:#a81f18;--fail-g:#fbe6e4;--warn:#7d5000;--warn-g:#fcf0d4;
--calm:#4d5562;--calm-g:#eceae5;--bar:#d9d5cc;
--mono:ui-monospace,"SF Mono","Cascadia Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media(prefers-color-scheme:dark){:root{--paper:#131519;--card:#1b1e24;--ink:#e7e6e2;--soft:#a0a7b4;--line:#2d3139;
--well:#15181d;--link:#93b4ff;--pass:#7bdba5;--pass-g:#14301f;--fail:#ffa59d;--fail-g:#3c1a18;--warn:#f2c76f;
--warn-g:#33280f;--calm:#b6bcc8;--calm-g:#292d35;--bar:#3b404a}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Helvetica Neue",Arial,sans-serif}
a{color:var(--link);text-decoration-thickness:1px;text-underline-offset:.18em}
:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:3px}
h1,h2,h3,h4,p,ul,ol,dl,dd,figure{margin:0;padding:0}
ul,ol{list-style:none}
.wrap{max-width:1180px;margin:0 auto;padding:0 20px}
.top{background:var(--card);border-bottom:1px solid var(--line);padding:18px 0 16px}
.brand{display:flex;align-items:center;gap:10px;font-size:1.2rem;font-weight:680;letter-spacing:-.01em}
.brand a{color:inherit;text-decoration:none}
.mark{width:24px;height:24px;fill:var(--link)}
.mark .b{opacity:.55}
.facts{display:flex;flex-wrap:wrap;gap:4px 28px;margin-top:10px;font-size:.875rem}
.facts div{display:flex;gap:8px;min-width:0}
.facts dt{color:var(--soft)}
.facts dd{overflow-wrap:anywhere}
main{padding:26px 0 64px}
h2{font-size:1.06rem;font-weight:650;letter-spacing:-.005em}
.head{display:flex;flex-wrap:wrap;align-items:baseline;justify-content:space-between;gap:8px 20px;margin:32px 0 12px}
.head:first-child{margin-top:0}
.note{color:var(--soft);font-size:.875rem}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:10px;background:var(--card)}
table{border-collapse:collapse;width:100%;font-size:.875rem}
th,td{padding:8px 12px;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;vertical-align:top}
thead th{font-weight:560;color:var(--soft);border-bottom:1px solid var(--line)}
tbody tr+tr>*{border-top:1px solid var(--line)}
th:first-child{text-align:left}
tbody th{color:var(--ink);font-weight:600}
tbody th{max-width:24em;overflow:hidden;text-overflow:ellipsis}
th:first-child{position:sticky;left:0;background:var(--card)}
tbody th a{color:inherit}
td.zero{color:var(--soft)}
td.bad{color:var(--fail);font-weight:600}
.filter{display:flex;flex-wrap:wrap;align-items:center;gap:8px;font-size:.875rem;margin-bottom:14px}
.head [aria-current]{color:var(--ink);text-decoration:none;font-weight:600}
.reasons{margin-top:8px;font-size:.875rem}
.reasons .ids{margin-top:6px;font-size:.875rem}
select,button,input{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:7px;
padding:5px 10px;max-width:100%}
button{font-weight:560;cursor:pointer}
button:hover{border-color:var(--soft)}
.sample{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--bar);border-radius:10px;
margin-bottom:14px;padding:14px 18px 16px;min-width:0}
.sample.fail{border-left-color:var(--fail)}
.sample.warn{border-left-color:var(--warn)}
.sample.pass{border-left-color:var(--pass)}
.title{display:flex;flex-wrap:wrap;align-items:baseline;gap:4px 12px;margin-bottom:12px}
.title h3{font-size:1rem;font-weight:640;overflow-wrap:anywhere;min-width:0}
.title .aside{color:var(--soft);font-size:.8125rem;margin-left:auto;display:flex;flex-wrap:wrap;gap:2px 12px}
.tag{font-size:.75rem;line-height:1.5;color:var(--calm);background:var(--calm-g);border-radius:5px;padding:1px 7px;
white-space:nowrap}
.tag.warn{color:var(--warn);background:var(--warn-g)}
.cols{display:grid;grid-template-columns:minmax(0,1.5fr) minmax(0,1fr);gap:16px 28px}
h4{font-size:.75rem;font-weight:600;color:var(--soft);letter-spacing:.02em;margin-bottom:3px}
.field+.field{margin-top:12px}
.text{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext;tab-size:4}
.box{background:var(--well);border-radius:8px;padding:8px 12px}
.box .text{max-height:70vh;overflow-y:auto}
.code{font-family:var(--mono);font-size:.8125rem;line-height:1.5}
.name{unicode-bidi:isolate;overflow-wrap:anywhere}
.none{color:var(--soft);font-style:italic}
details>summary{cursor:pointer;list-style:none}
details>summary::-webkit-details-marker{display:none}
.more{color:var(--link);font-size:.8125rem;white-space:nowrap}
.more::before{content:"\\25B8\\00A0"}
details[open]>summary .more::before{content:"\\25BE\\00A0"}
details[open]>summary .glance,details[open]>summary .open{display:none}
details:not([open])>summary .shut{display:none}
.docs li{padding:8px 0}
.docs li+li{border-top:1px solid var(--line)}
.docs .from{display:flex;flex-wrap:wrap;gap:2px 12px;font-size:.8125rem;color:var(--soft)}
.scores>li{padding:9px 0}
.scores>li:first-child{padding-top:0}
.scores>li+li{border-top:1px solid var(--line)}
.line{display:flex;flex-wrap:wrap;align-items:center;gap:4px 9px}
.line .who{font-weight:600;overflow-wrap:anywhere;min-width:0}
.line .num{margin-left:auto;font-variant-numeric:tabular-nums;font-weight:600}
.chip{font-size:.8125rem;font-weight:600;border-radius:999px;padding:0 9px;line-height:1.65;background:var(--calm-g);
color:var(--calm);max-width:100%;overflow-wrap:anywhere}
.chip.pass{color:var(--pass);background:var(--pass-g)}
.chip.fail{color:var(--fail);background:var(--fail-g)}
.chip.warn{color:var(--warn);background:var(--warn-g)}
.chip.soft{font-weight:500}
.bar{display:block;width:100%;height:7px;margin:6px 0 2px;overflow:visible}
.bar .track{fill:var(--bar)}
.bar .fill{fill:var(--calm)}
.bar.pass .fill{fill:var(--pass)}
.bar.fail .fill{fill:var(--fail)}
.bar .limit{stroke:var(--ink);stroke-width:2;vector-effect:non-scaling-stroke}
.why{font-size:.9rem;margin-top:3px}
.by{color:var(--soft);font-size:.8125rem;margin-top:2px;overflow-wrap:anywhere;display:flex;flex-wrap:wrap;gap:0 .45em}
.by span{min-width:0}
.by span:not(:last-child)::after{content:"\\00A0\\00B7"}
.pages{display:flex;gap:20px;margin-top:22px}
.empty{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:22px 24px}
.empty p{max-width:68ch}
.empty p+p,.empty pre+p,.empty p+pre,.empty p+form{margin-top:12px}
pre{margin:0;background:var(--well);border-radius:8px;padding:12px 14px;overflow-x:auto}
.empty pre.wrapped{white-space:pre-wrap;overflow-wrap:anywhere}
pre,code{font-family:var(--mono);font-size:.8125rem}
.ids{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:5px 18px;font-size:.9rem}
.ids dt{color:var(--soft)}
.ids dd{overflow-wrap:anywhere}
.story .sample{padding:18px 20px 20px}
.story .cols{grid-template-columns:minmax(0,1.3fr) minmax(0,1fr)}
.foot{color:var(--soft);font-size:.8125rem;border-top:1px solid var(--line);padding:16px 0 40px}
.foot .wrap{display:flex;flex-wrap:wrap;gap:4px 20px}
@media(max-width:760px){.wrap{padding:0 14px}.cols,.story .cols{grid-template-columns:minmax(0,1fr)}
.sample,.story .sample{padding:12px 14px 14px}.title .aside{margin-left:0;width:100%}.facts{gap:4px 20px}
main{padding-top:18px}tbody th{max-width:11em}.scores{border-top:1px solid var(--line);padding-top:12px}}
"""

STYLE: Final = Html(f"<style>{CSS}</style>")
CSP: Final = (
    "default-src 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
