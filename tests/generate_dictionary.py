"""Write the page of the data dictionary: ``python tests/generate_dictionary.py``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "notebooks" / "docs" / "data-dictionary.md"
sys.path.insert(0, str(ROOT))

from nbdurable.stores.duckdb.dictionary import ABOUT, data_dictionary  # noqa: E402
from nbdurable.stores.duckdb.views import VIEWS  # noqa: E402

INTRODUCTION = '''# Data dictionary

A store is a DuckDB file. These views are in it, for any DuckDB client and for
`nb.connect(store).sql(query, params)`; the DataFrames of the package read them too, so that
columns of one name agree to the row.

```python
import nbdurable as nb

with nb.open("talk", store="chats.duckdb", model="openai/gpt-4.1-mini") as chat:
    chat.run("Name a fruit.")
    chat.label(chat.leaf_id, "good")

labelled = """
    select e.n, e.role, a.value_json from annotations a join entries e on e.id = a.target_id
    where a.name = ? order by e.seq
"""
with nb.connect("chats.duckdb") as library:
    found = library.sql(labelled, ["label"])
found.values.tolist()
```

```text
[[2, 'assistant', '"good"']]
```

Whatever names an entry is joined to its `id` by `=`, in a PostgreSQL store too.

Times are instants; the package shows them in UTC. Costs are US dollars. Order is by `seq`.
'''


def page() -> str:
    """Return the page as Markdown."""
    columns = data_dictionary()
    parts = [INTRODUCTION]
    for view in VIEWS:
        rows = [f"| `{c.name}` | {c.type} | {c.meaning} |" for c in columns if c.view == view]
        head = "| column | type | meaning |\n| --- | --- | --- |"
        parts.append(f"## {view}\n\n{ABOUT[view]}\n\n{head}\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
