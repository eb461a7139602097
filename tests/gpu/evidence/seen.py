"""GPU runs on record for each cell of the support table, as runtime/doctor/declared/seen.json.

tests/gpu/records/shows.json says of each record what it shows: `caches`, those of random cases whose counts do not say; `shows`, a row
of the table and a pattern that a line of the record has; `not`, a row that the record names and does not show, and why; `nothing`, why
a record shows no row. What a record's own facts name (names.py) needs no entry, except that engines' features need one of these.
"""

import json
import re
from pathlib import Path

import names
from records import card_of

ROOT = Path(__file__).resolve().parents[3]
ARCHITECTURES = {"H100": "sm_90a", "H200": "sm_90a"}
NO_RECORDS = {"README.md", "shows.json", "history.jsonl", "history.md", "history.svg"}


def rows_of_the_table():
    """Attentions' rows, and engines' as "vLLM: mla" with whether the plug-in takes it."""
    features = (ROOT / "runtime/doctor/Features.h").read_text(encoding="utf-8")
    engines = json.loads((ROOT / "runtime/doctor/declared/engines.json").read_text(encoding="utf-8"))
    return {name: True for name in re.findall(r'^    \{"(\w+)", "', features, re.M)} | {
        f"{engine}: {row['feature']}": row["state"] != "no" for engine, declared in engines.items() for row in declared["features"]}


def lines_of(value, path=""):
    """A record as lines: `suites.0.rows.3.right: true`."""
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from lines_of(inner, f"{path}.{key}" if path else str(key))
    else:
        yield f"{path}: {value if isinstance(value, str) else json.dumps(value)}"


class Shown:
    """What the records of a folder show, and the faults of shows.json."""

    def __init__(self, records):
        self.entries = json.loads((records.folder / "shows.json").read_text(encoding="utf-8"))
        self.rows, self.faults = {}, []
        table, readme = rows_of_the_table(), (records.folder / "README.md").read_text(encoding="utf-8")
        files = {path.name for path in records.folder.iterdir()} - NO_RECORDS
        self.faults += [f"{name}: shows.json has it, the folder does not" for name in sorted(set(self.entries) - files)]
        for name in sorted(files):
            entry = self.entries.get(name, {})
            try:
                rows = self.of_one(records, name, entry)
            except names.UnknownName as unknown:
                self.faults.append(f"{name}: {unknown}")
                continue
            self.faults += [f"{name}: `{row}` is no row of the support table" for row in sorted(rows - set(table))]
            self.faults += [f"{name}: shows `{row}`, and its cell says no" for row in sorted(rows & set(table)) if not table[row]]
            if bool(rows) == ("nothing" in entry):
                self.faults.append(f"{name}: shows.json must say what it shows, or why nothing" if not rows else f"{name}: it shows {', '.join(sorted(rows))}")
            if rows and f"]({name})" not in readme:
                self.faults.append(f"{name}: README.md has no row for it")
            self.rows[name] = rows & set(table)

    def of_one(self, records, name, entry):
        is_json = name.endswith((".json", ".jsonl"))
        record = records.read(name) if is_json else []
        named = names.of_record(record, entry.get("caches", ()))
        claimed, declined = entry.get("shows", {}), set(entry.get("not", {}))
        lines = () if not claimed else list(lines_of(record)) if is_json else (records.folder / name).read_text(encoding="utf-8").splitlines()
        for row, pattern in claimed.items():
            if not any(re.search(pattern, line) for line in lines):
                self.faults.append(f"{name}: no line has `{pattern}`, which would show `{row}`")
        of_engines = {row for row in named if ": " in row}
        self.faults += [f"{name}: names `{row}`; shows.json must say whether that was right" for row in sorted(of_engines - set(claimed) - declined)]
        self.faults += [f"{name}: `not` has `{row}`, which the record does not name" for row in sorted(declined - named)]
        return (named - of_engines - declined) | set(claimed)


def entry(records, name):
    card = card_of(name.split("-")[0].upper())
    return {"card": card, "arch": ARCHITECTURES[card], "date": records.date(name), "record": name}


def seen(records):
    """The file's text: {row: [{card, arch, date, record}]}, the newest record of each card."""
    shown, found = Shown(records), {}
    if shown.faults:
        raise SystemExit("\n".join(shown.faults))
    for name, rows in shown.rows.items():
        for row in rows:
            cards, one = found.setdefault(row, {}), entry(records, name)
            if one["date"] >= cards.get(one["card"], one)["date"]:
                cards[one["card"]] = one
    lines = (f' "{row}": [' + ", ".join(json.dumps(cards[card]) for card in sorted(cards)) + "]" for row, cards in sorted(found.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"
