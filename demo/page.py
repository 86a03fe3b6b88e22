"""The results for people: tables on the terminal, and build/demo/report.html, one file that needs nothing else."""

import html
import time

import inputs
import race
import report
import statements

PATH = inputs.WORK / "report.html"

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2430; background: #f4f6f9; margin: 0; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 36px 0 8px; }
.lead { font-size: 17px; color: #4a5363; margin: 0 0 20px; max-width: 56em; }
.cards { display: flex; flex-wrap: wrap; gap: 14px; }
.card { background: #fff; border: 1px solid #dde2ea; border-radius: 8px; padding: 14px 18px; flex: 1 1 220px; }
.card b { display: block; font-size: 30px; color: #1b6fd6; }
.card b.failed, td.failed { color: #c0271e; }
.panel { background: #fff; border: 1px solid #dde2ea; border-radius: 8px; padding: 12px 16px; margin: 12px 0;
         overflow-x: auto; }
.panel svg { display: block; width: 100%; height: auto; }
figure { margin: 0; } figcaption, .small { color: #4a5363; font-size: 13px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-size: 12px; color: #4a5363; border-bottom: 1px solid #b9bec7; padding: 4px 10px; }
td { padding: 4px 10px; border-bottom: 1px solid #edf0f4; white-space: nowrap; }
td.failed { white-space: normal; }
.number { text-align: right; } .ratio { font-weight: 700; color: #1b6fd6; }
code { font-size: 13px; }
"""


def print_results(results, refused):
    """The table that the demo is about."""
    report.table("The same rows by COPY into the same table, direct I/O, buffers far smaller than the indexes",
                 ["input", "io_method", "off rows/s", "on rows/s", "ratio", "reads off", "reads on",
                  "reads in flight"],
                 [[result.new.name, result.method, report.number(result.rows_per_s("off")),
                   report.number(result.rows_per_s("on")), f"{result.ratio():.2f}x",
                   report.number(result.reads("off")), report.number(result.reads("on")),
                   in_flight(result.reads_in_flight("on"))] for result in results])
    print("off, on: aio.await_index_inserts. Reads in flight: on average while inserts waited, awaiting on.")
    for method, why in refused.items():
        print(f"io_method {method} is not available here: {why}")
    for new in invented():
        print(f"{new.name}: rows invented by the demo, because {new.package} could not be had from PyPI.")


def print_chapters(chapters):
    for chapter, found in chapters:
        report.table(chapter.caption, ["statement", "io_method", "rows", "off s", "on s", "ratio", "reads off", "reads on", ""],
                     [[result.statement.title, result.method, report.number(result.rows()),
                       report.number(result.seconds("off"), 2), report.number(result.seconds("on"), 2),
                       f"{result.ratio():.2f}x", report.number(result.reads("off")), report.number(result.reads("on")),
                       verdict(result)] for result in found])
        print(f"off, on: {chapter.difference}.")
        print_faults((result.statement.title, result.faults) for result in found)


def print_checks(checks):
    """Verdicts by input."""
    for new, verdicts in checks:
        report.table(f"{new.name}: checked on both sides, and the sides against each other",
                     ["what", "method", "amcheck", "contents", ""],
                     [[check.name, check.method, check.structure, check.contents,
                       verdict(check)] for check in verdicts])
        print_faults((check.name, check.faults) for check in verdicts)


def verdict(checked):
    return "FAILED" if checked.faults else "equal"


def print_faults(named):
    for name, faults in named:
        for fault in faults:
            print(f"{name}: {fault}")


def all_good(checks, chapters):
    return not any(one.faults for _, checked in [*checks, *chapters] for one in checked)


def write(install, results, refused, chapters, checks, figures):
    cells = [title(results, chapters, checks)]
    cells.append(results_section(results, refused))
    if figures:
        cells += [panel(figure) for figure in figures if figure.name not in [chapter.name for chapter, _ in chapters]]
    else:
        cells.append('<p class="small">There are no figures: matplotlib could not be had from PyPI.</p>')
    for chapter, found in chapters:
        cells.append(chapter_section(chapter, found))
        cells += [panel(figure) for figure in figures if figure.name == chapter.name]
    cells.append(checks_section(checks))
    cells.append(method_section(install, results))
    PATH.write_text(f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Awaited index inserts</title>'
                    f"<style>{STYLE}</style></head><body><main>{''.join(cells)}</main></body></html>\n")


def panel(figure):
    return (f'<div class="panel"><figure>{figure.svg}<figcaption>{text(figure.caption)}</figcaption></figure></div>')


def title(results, chapters, checks):
    best = {}       # the method that one would choose: with awaiting on, the fastest
    for result in sorted(results, key=lambda result: result.rows_per_s("on")):
        best[result.new.name] = result
    cards = [f'<div class="card"><b>{result.ratio():.2f}×</b>{text(result.new.title)}<br><span class="small">'
             f"{result.rows_per_s('off'):,.0f} → {result.rows_per_s('on'):,.0f} rows/s, io_method {result.method}"
             f"</span></div>" for name, result in sorted(best.items())]
    cards += [chapter_card(chapter, found) for chapter, found in chapters]
    number = sum(len(verdicts) for _, verdicts in checks)
    outcome = "<b>equal</b>" if all_good(checks, chapters) else '<b class="failed">FAILED</b>'
    cards.append(f'<div class="card">{outcome}{number} tables, indexes and foreign keys<br><span class="small">contents with '
                 f"awaiting off and on, and amcheck</span></div>")
    return ('<h1>Index inserts that await their reads</h1><p class="lead">New rows are loaded by COPY into a table '
            "that is already full and indexed, and whose indexes do not fit into memory. Each row must first read "
            "the index pages where it belongs. With awaiting off, one after the other; with awaiting on, the inserts "
            "of many rows and indexes wait for their reads together.</p>"
            f'<div class="cards">{"".join(cards)}</div>')


def chapter_card(chapter, found):
    def seconds(method, side):
        return sum(result.seconds(side) for result in found if result.method == method)
    method = min((result.method for result in found), key=lambda method: seconds(method, "on"))
    off, on = (seconds(method, side) for side in ("off", "on"))
    return (f'<div class="card"><b>{off / on:.2f}×</b>{text(chapter.heading)}<br><span class="small">'
            f"{off:.1f} → {on:.1f} s, io_method {method}</span></div>")


def results_section(results, refused):
    rows = []
    for result in results:
        spread = [off.seconds / on.seconds for off, on in zip(result.loads["off"], result.loads["on"])]
        rows.append([result.new.name, result.method, report.number(result.rows_per_s("off")),
                     report.number(result.rows_per_s("on")), f"{result.ratio():.2f}×",
                     f"{min(spread):.2f}–{max(spread):.2f}", f"{len(spread)} × {result.new.slice_rows:,}",
                     report.number(result.reads("off")), report.number(result.reads("on")),
                     report.number(result.writes("off")), report.number(result.writes("on")),
                     in_flight(result.reads_in_flight("on")),
                     in_flight(result.disk_reads_in_flight("off")), in_flight(result.disk_reads_in_flight("on"))])
    notes = ["Reads and writes are those of the loading session. Reads in flight: the server's own average over the "
             "time in which inserts waited (<code>aio_session_stats()</code>), and the block device's average over "
             "the whole load, whoever reads. Writes are of changed pages whose buffers the load needed before the "
             "background writer got to them."]
    if any(result.method == "sync" for result in results):
        notes.append("sync reads at once and in place, so nothing can be awaited: it is the baseline.")
    notes += [f"io_method {method} is not available here: {text(why)}" for method, why in refused.items()]
    notes += [f"{text(new.name)}: rows invented by the demo, because {text(new.package)} could not be had from PyPI."
              for new in invented()]
    return ("<h2>Results</h2>" + table(
        ["input", "io_method", "off rows/s", "on rows/s", "ratio", "by slice", "slices", "reads off", "reads on",
         "writes off", "writes on", "in flight", "disk, off", "disk, on"], rows, words=2, ratio=4) +
        "".join(f'<p class="small">{note}</p>' for note in notes))


def chapter_section(chapter, found):
    rows = []
    for result in found:
        spread = [off.seconds / on.seconds for off, on in zip(result.runs["off"], result.runs["on"])]
        rows.append([result.new.name, result.statement.title, result.method, report.number(result.rows()),
                     report.number(result.seconds("off"), 2), report.number(result.seconds("on"), 2),
                     f"{result.ratio():.2f}×", f"{min(spread):.2f}–{max(spread):.2f}",
                     report.number(result.reads("off")), report.number(result.reads("on")),
                     in_flight(result.disk_reads_in_flight("off")), in_flight(result.disk_reads_in_flight("on")),
                     "; ".join(result.faults) if result.faults else "equal"])
    return (f"<h2>{text(chapter.heading)}</h2><p>{text(chapter.about)} The sides differ in "
            f"{text(chapter.difference)}, and in nothing else.</p>" +
            table(["input", "statement", "io_method", "rows", "off s", "on s", "ratio", "by run", "reads off",
                   "reads on", "disk, off", "disk, on", ""], rows, words=3, ratio=6) +
            f'<p class="small">Runs of each statement on each side: {statements.TURNS}, with other rows each time, in the '
            "tables into which the rows above were loaded; all pages were evicted before. disk: reads in flight, as the "
            "block device counts them. equal: both sides have found the same rows, in the same order where the index "
            "gives one; what other statements have left is compared below.</p>")


def checks_section(checks):
    parts = ["<h2>Is the data right?</h2><p>After the last statement, on the tables of both sides: "
             "amcheck where it knows the index method; then all contents of an index, read through that index alone, "
             "against the table; whether the rows have all rows that they refer to; then one side against the other.</p>"]
    for new, verdicts in checks:
        rows = [[check.name, check.method, f"{check.size / 1024:,.0f} kB" if check.size else "", check.structure, check.contents,
                 check.checksum, "; ".join(check.faults) if check.faults else "equal"] for check in verdicts]
        parts.append(table([new.name, "method", "size", "amcheck", "contents", "checksum", ""], rows, words=7))
    return "".join(parts)


def method_section(install, results):
    machine = report.machine()
    settings = ", ".join(f"<code>{name} = {text(value)}</code>" for name, value in race.SETTINGS.items())
    inputs_told = "".join(
        f"<li>{text(new.title)}, from {text(new.package if new.real else 'rows that the demo invented')}; "
        f"<code>shared_buffers = {new.shared_buffers}</code>; indexes: "
        + "; ".join(f"<code>{text(index.create_sql(new.name).partition(' USING ')[2].strip())}</code>"
                    for index in new.indexes)
        + "; after the loads: " + "; ".join(f"<code>{text(sql.strip())}</code>" for sql in new.constraints_sql())
        + "</li>" for new in inputs.INPUTS)
    return (f"<h2>How it was measured</h2><ul>{inputs_told}</ul>"
            f"<p>Each side has its own copy of the database, equal to the byte at the beginning. Both load every slice "
            f"of new rows, in turns as to who is first, each after a checkpoint. The sides differ in "
            f"<code>aio.await_index_inserts</code> and in nothing else. Settings: {settings}.</p>"
            f"<p>The background writer is made eager because a load that finds only changed pages to reuse waits for "
            f"its own writes instead of for reads.</p>"
            f'<p class="small">{text(install.version())}; Linux {text(machine["kernel"])}, {machine["cpus"]} × '
            f'{text(machine["cpu"] or machine["architecture"])}, {machine["memory_bytes"] / 2**30:.0f} GiB; '
            f'{time.strftime("%Y-%m-%d %H:%M %Z")}. Run it again with <code>./pgawait demo</code>.</p>')


def invented():
    return [new for new in inputs.INPUTS if not new.real]


def in_flight(value):
    return "–" if value is None else f"{value:.1f}"


def table(header, rows, words, ratio=None):
    """An HTML table whose first columns are words and whose others are numbers."""
    def cell(tag, column, value):
        kind = "ratio number" if column == ratio else "number" if column >= words else ""
        if header[column] == "" and value not in ("", "equal"):
            kind = "failed"
        return f'<{tag} class="{kind}">{text(value)}</{tag}>'
    lines = [[("th", value) for value in header]] + [[("td", value) for value in row] for row in rows]
    return '<div class="panel"><table>' + "".join(
        "<tr>" + "".join(cell(tag, column, value) for column, (tag, value) in enumerate(line)) + "</tr>"
        for line in lines) + "</table></div>"


def text(value):
    return html.escape(str(value), quote=False)
