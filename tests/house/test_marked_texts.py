"""The gate: what a person reads is marked to be translated, also in Python."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARKS = {"gettext", "ngettext", "gettext_noop", "_"}
# Calls that are marked by `make messages` itself: see webapp/management/commands/makemessages.py.
KEYWORDS = re.search(r"KEYWORDS = \((.*?)\n\)", (ROOT / "webapp/management/commands/makemessages.py").read_text(), re.S)
MARKED_CALLS = {name.split(":")[0] for name in re.findall(r'"([\w:]+)"', KEYWORDS[1])}
# What operators and programmers read: logs, labels of what waits, and errors that are bugs or end a command.
LOGS = {"debug", "info", "warning", "error", "exception", "critical", "tell", "Prefetch"}
BUGS = {
    *("KeyError", "TypeError", "ValueError", "RuntimeError", "LookupError", "NotImplementedError", "AssertionError"),
    *("CommandError", "CannotStart", "StepFailed", "Http404", "FixedRow", "compile", "sub", "register_script"),
}
# Whole files and folders whose texts are no texts of Lookout for its users, and why.
OTHERS = {
    "webapp/backup": "the terminal of operators",
    "webapp/live": "the terminal of operators",
    "webapp/management": "the terminal of operators",
    "webapp/migrations": "written once",
    "webapp/operations/metrics.py": "descriptions of metrics, for Prometheus",
    "webapp/audit": "the audit log is one for all readers",
    "webapp/models/audit.py": "the audit log is one for all readers",
    "webapp/models/audit_values.py": "the audit log is one for all readers",
    "webapp/consumers/permissions.py": "rules for the documentation",
    "webapp/demo": "names of examples are data",
    "webapp/bus/telling.py": "log lines",
    "webapp/bus/notify.py": "log lines",
    "webapp/bus/definitions.py": "log lines",
    "streaming/simulator": "names of places are data",
    "streaming/gateway/presets.py": "titles of streams are data",
    "streaming/gateway/samples.py": "the terminal of operators",
    "streaming/decoders/ais_words.py": "values of properties are data",
    "streaming/engine": "logs of operators",
    "streaming/eventlog": "logs of operators",
    "streaming/state": "logs of operators",
    "streaming/settings.py": "settings of operators",
    "streaming/forkserver.py": "a program of the shell",
    "streaming/logs.py": "scripts of Redis",
    "streaming/redis_memory.py": "logs of operators",
    "streaming/kinds/base.py": "how kinds are evaluated, for programmers",
    **{f"streaming/{path}": "the JSON schema of plans" for path in ("kinds/schema.py", "plans/schema.py")},
}
OTHERS |= {
    str(path.relative_to(ROOT)): "the JSON schema of plans" for path in (ROOT / "streaming/kinds").glob("*/schema.py")
}
# Single texts that are not marked, and why.
ALLOWED = {
    "webapp/alarms/incidents.py": r"^(to |until |by hand)",  # stored in the log of incidents; pages translate them
    "webapp/queries/query_warnings.py": r"^the query failed$",  # likewise
    "webapp/queries/waiting.py": r"^the (query waits for its layer|rule waits for a query that it watches)$",  # too
    "webapp/recording/strain.py": r"^the query was paused",  # likewise
    "webapp/recording/incident_check.py": r"was lost$",  # likewise
    "webapp/queries/queries.py": r"deleted the query$|^changed what|^paused the query$|^made the query",  # likewise
    "webapp/admin/queries.py": r"deleted the query$",  # likewise
    "webapp/delivery/claims.py": r"^the (worker ended|receiver may not hear)",  # stored in the log of attempts
    "webapp/bus/regions.py": r"^cut anew into|^\{\}, by \{\}$",  # kept with the map of regions
    "webapp/recording/recording.py": r"not recorded$|not be recorded",  # log lines
    "webapp/hub/encoding.py": r"could not be told",  # log lines
    "webapp/bus/groups.py": r"^nothing came for",  # log lines
    "webapp/delivery/sending.py": r"^%d attempts",  # log lines
    "webapp/rights/guards.py": r"^metrics are for staff",  # programs read it
    "webapp/models/delivery.py": r"\{\} (by|at) \{\}$|^delivery \{\}$",  # names of rows, which the audit log keeps
    "webapp/models/teams.py": r"\{\} in \{\}$",  # likewise
    "webapp/models/incidents.py": r"\{\} by \{\}$",  # likewise
    "webapp/models/queries.py": r"^examples removed by",  # likewise
    "webapp/models/events.py": r"^no longer $",  # a name of a threshold
    "streaming/kinds/aggregate/plan.py": r"^(above|below) |for \{\} s$",  # the engine's names of thresholds
    "streaming/kinds/closest_approach/plan.py": r"^The (stream of the other objects|objects that come close)\.$",
    "streaming/kinds/range/kind.py": r"^An aggregate over a fixed area has no focus\.$",  # the JSON schema of plans
    "streaming/kinds/rule/plan.py": r"^\{\} of \{\}\{\}$",  # names of properties of alarms
    "streaming/decoders/ais_reports.py": r"^(base station|aid to navigation)$",  # values of properties are data
    "streaming/gateway/intake.py": r"^writer of",  # the name of a thread
}
# Addresses, headers, styles, grammars, keys of documents and names of formats.
CODE = re.compile(
    r"^(Bearer |attachment;|public, |private, |img-src|connect-src|-OOM|;? ?It might|\n|tuple\[|audit \{\})"
    r"|^[a-z_]+: [a-z_]+(: \{\})?$|^StreamingHttpResponse|^%\(asctime\)|^\{\} km$|^engine\.status|^client \{\}$"
)


def texts(path):
    """Yield the texts of a source as (node, text, parents), with {} for each value; each node has its parent there."""
    tree = ast.parse(path.read_text())
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(parents.get(node), ast.Expr | ast.JoinedStr | ast.FormattedValue | ast.Compare):
            continue  # a docstring, a part of another text, or a word that something is compared with
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node, "".join(map(str, parts)), parents
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node, node.value, parents


def reads(text):
    """Tell whether a text reads like a sentence: two words, or a word beside a value."""
    text = re.sub(r"%\(\w+\)\w|\{\}", "#", text)
    return bool(re.search(r"(?:^|[\s(“])[A-Za-z][a-z']*[,;:]? [a-z]\w*|#,? [a-z]{2,}|\b[a-z]{3,} #", text))


def is_marked(node, parents):
    """Tell whether a text is given to a function that marks it, or to one whose texts are for operators."""
    inner = node
    while inner in parents and not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        outer = parents[inner]
        if isinstance(outer, ast.Call) and inner is not outer.func:
            name = outer.func.id if isinstance(outer.func, ast.Name) else getattr(outer.func, "attr", "")
            plain = isinstance(node, ast.Constant)  # an f-string is filled before it is translated
            if name in LOGS | BUGS or (plain and name in MARKS | MARKED_CALLS):
                return True
        if isinstance(outer, ast.Assert):
            return True
        inner = outer
    return False


def is_label(node, parents):
    """Tell whether a text, which may be one word, names a group of fields of a form, or a model."""
    outer = parents.get(node)
    if isinstance(outer, ast.Tuple) and outer.elts[0] is node and len(outer.elts) == 2:
        fields = outer.elts[1]
        return isinstance(fields, ast.Dict) and any(getattr(key, "value", "") == "fields" for key in fields.keys)
    if isinstance(outer, ast.Assign):
        names = {getattr(target, "attr", getattr(target, "id", "")) for target in outer.targets}
        return bool(names & {"verbose_name", "verbose_name_plural", "index_title", "short_description"})
    return False


def faults(path, allowed=""):
    """Return the texts of a source that are not marked."""
    return [
        f"{node.lineno}: {text}"
        for node, text, parents in texts(path)
        if (reads(text) or (is_label(node, parents) and text != "Lookout"))
        and not CODE.search(text)
        and not (allowed and re.search(allowed, text))
        and not is_marked(node, parents)
    ]


SOURCES = [
    path
    for folder in ("webapp", "streaming")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not any(path.is_relative_to(ROOT / other) for other in OTHERS)
]


def test_every_text_that_a_person_reads_is_marked():
    names = {path: str(path.relative_to(ROOT)) for path in SOURCES}
    assert len(names) > 300
    found = [f"{name}:{fault}" for path, name in names.items() for fault in faults(path, ALLOWED.get(name, ""))]
    assert found == [], f"{len(found)} texts are not given to gettext"


def test_the_exceptions_are_needed():
    unneeded = [name for name in ALLOWED if faults(ROOT / name) == faults(ROOT / name, ALLOWED[name])]
    gone = [name for name in OTHERS if not (ROOT / name).exists()]
    assert (unneeded, gone) == ([], [])


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('raise InvalidPlan(f"k must be at least 1; got {k}")', 1),
        ('raise InvalidPlan("k must be at least 1; got %(k)s", k=k)', 0),
        ('return Term("in the answer", True)', 1),
        ('return Term(gettext("in the answer"), True)', 0),
        ('fieldsets = [("Source", {"fields": ("transport",)})]', 1),
        ('fieldsets = [(gettext("Source"), {"fields": ("transport",)})]', 0),
        ('verbose_name = "member"', 1),
        ('return gettext(f"the answer of {query}")', 1),
        ('messages.success(request, "The stream is saved.")', 1),
        ('rule = f"at most {most} pages"', 1),
        ('logger.warning("the stream %s ended", name)', 0),
        ('raise KeyError("there is no such part")', 0),
        ('document = {"kind": "range", "area": box}', 0),
    ],
)
def test_texts_that_are_not_marked_are_found(tmp_path, source, count):
    path = tmp_path / "source.py"
    path.write_text(source)
    assert len(faults(path)) == count


def test_a_value_in_a_text_has_a_name_that_says_to_translators_what_it_is():
    numbered = re.compile(r"%\(\w+_\d+\)s")
    assert numbered.search("got %(count)s and %(count_2)s")
    assert [path for path in SOURCES if numbered.search(path.read_text())] == []
