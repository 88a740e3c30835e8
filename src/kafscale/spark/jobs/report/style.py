"""The style sheet of the HTML page: light and dark mode, screen and print. Pure."""

from typing import Final

STYLE: Final = """
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #ffffff; --ink: #16202e; --soft: #5d6b7e; --line: #e3e7ed;
  --accent: #2f6bde; --track: #eef1f6; --part-0: #2f6bde; --part-1: #e08a1e; --part-2: #1f9d84;
  --part-3: #8a63d2; --warn: #b42318; --good: #1a7f4b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f141b; --card: #171e28; --ink: #e6ebf2; --soft: #93a1b5; --line: #273142;
    --accent: #6ea0ff; --track: #212a38; --part-0: #6ea0ff; --part-1: #f0a94a; --part-2: #45c4aa;
    --part-3: #b294f2; --warn: #ff8a7d; --good: #5fd39a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 1120px; margin: 0 auto; padding: 32px 20px 56px; }
header p { margin: 4px 0 0; color: var(--soft); }
h1 { margin: 0; font-size: 26px; letter-spacing: -0.01em; }
h2 { margin: 0 0 4px; font-size: 17px; }
.lead { font-size: 18px; max-width: 62em; margin: 20px 0 24px; }
.note { margin: 0 0 14px; color: var(--soft); font-size: 13.5px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(132px, 1fr)); gap: 12px; }
.figures div, .card {
  background: var(--card); border: 1px solid var(--line); border-radius: 10px;
}
.figures div { padding: 14px 16px; }
.figures dt { color: var(--soft); font-size: 13px; }
.figures dd {
  margin: 2px 0 0; font-size: 20px; font-weight: 600; white-space: nowrap;
}
.cards {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(460px, 100%), 1fr));
  gap: 0 16px; align-items: start;
}
.side { min-width: 0; }
.card { padding: 18px 20px; margin-top: 16px; }
ul { list-style: none; margin: 0; padding: 0; }
.bars li {
  display: grid; grid-template-columns: minmax(90px, 30%) 1fr 92px; gap: 10px;
  align-items: center; padding: 3px 0;
}
.name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.track { background: var(--track); border-radius: 4px; height: 14px; display: block; }
.bar {
  background: var(--accent); border-radius: 4px; height: 14px; display: block; min-width: 2px;
}
.amount, .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.amount { color: var(--soft); font-size: 13.5px; }
.profile + .profile { margin-top: 20px; }
.profile h3 { display: flex; justify-content: space-between; margin: 0 0 6px; font-size: 15px; }
.stack {
  display: flex; height: 16px; border-radius: 4px; overflow: hidden; background: var(--track);
}
.part-0 { background: var(--part-0); } .part-1 { background: var(--part-1); }
.part-2 { background: var(--part-2); } .part-3 { background: var(--part-3); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin-top: 8px; font-size: 13.5px; }
.legend b { font-weight: 600; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 3px; margin-right: 6px; }
.profile p { margin: 8px 0 0; color: var(--soft); font-size: 13.5px; }
svg { width: 100%; height: auto; display: block; }
.grid { stroke: var(--line); }
.tick { fill: var(--soft); font-size: 11.5px; }
.column { fill: var(--accent); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th { text-align: left; color: var(--soft); font-weight: 500; white-space: nowrap; }
th.number { text-align: right; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { white-space: nowrap; }
tbody tr:last-child td { border-bottom: 0; }
.warn { color: var(--warn); } .good { color: var(--good); }
footer { margin-top: 24px; color: var(--soft); font-size: 13px; }
@media print { body { background: none; } .card { break-inside: avoid; } }
"""
