"""What the built-in offline model says and which tools it calls, turn by turn: rules over the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from rx_agent.cli.file_tree import human_size
from rx_agent.cli.offline_evidence import NOTICE, Evidence
from rx_agent.cli.offline_questions import Intent, Question
from rx_agent.cli.offline_summaries import file_line, gist, outline, plural, shortened, sized
from rx_agent.providers.scripted import Call, call

ABILITIES = (
    "I follow a few rules: I can say which files are the largest and what they are, count files and lines, list "
    "a folder, search for a text, and show or outline a file. For anything else I have to pass."
)
_ABOUT = (
    "readme.md",
    "readme.rst",
    "readme.txt",
    "readme",
    "pyproject.toml",
    "package.json",
    "cargo.toml",
    "go.mod",
)


@dataclass(frozen=True, slots=True)
class Reply:
    """One turn: text, and the calls to make; none where the text is the answer."""

    text: str
    calls: tuple[Call, ...] = ()


def reply_to(evidence: Evidence) -> Reply:
    """The next turn."""
    reply = _answer(evidence)
    possible = tuple(each for each in reply.calls if each.name in evidence.tools)
    if reply.calls and not possible:
        text = f"I have no tool for that here ({', '.join(sorted({each.name for each in reply.calls}))} is missing), "
        reply = Reply(f"{text}so I cannot look at your files. {ABILITIES}")
    else:
        reply = Reply(reply.text, possible)
    notice = "" if evidence.introduced else NOTICE + "\n\n"
    return Reply(notice + reply.text, reply.calls)


def _answer(evidence: Evidence) -> Reply:
    if evidence.attached:
        return Reply(_with_notes(evidence, _about_attached(evidence)))
    question = evidence.question
    if question is not None and question.intent == "help":
        return Reply(ABILITIES)
    step = _INTENTS[question.intent if question else "list"](evidence, question or Question("list"))
    return step if step.calls else Reply(_with_notes(evidence, step.text))


def _with_notes(evidence: Evidence, answer: str) -> str:
    lines = [answer]
    if evidence.failures:
        lines += [
            "",
            "What did not work:",
            *(f"- {shortened(failure, 200)}" for failure in evidence.failures),
        ]
    if evidence.ignored:
        said = ", ".join(f"“{shortened(text, 60)}”" for text in evidence.ignored)
        lines += ["", f"I have no rule for {said}, so I went on with the question before."]
    return "\n".join(lines)


def _heads(paths: list[str], lines: int) -> tuple[Call, ...]:
    return tuple(call("read_file", path=path, limit=lines) for path in paths)


def _readings(evidence: Evidence) -> dict[str, dict[str, Any]]:
    return {str(details["path"]): details for details in evidence.told("read_file")}


def _listing(evidence: Evidence, *, recursive: bool) -> dict[str, Any] | None:
    """The listing of everything, or of the top level, where it came."""
    return next((each for each in evidence.told("list_files") if each["recursive"] is recursive), None)


def _which(question: Question) -> str:
    where = "here" if question.path == "." else f"in {question.path}"
    return where if question.pattern == "*" else f"{where} matching {question.pattern}"


def _there_are(question: Question, listing: dict[str, Any]) -> str:
    which = _which(question)
    verb = "is" if listing["total_files"] == 1 else "are"
    return f"{which[0].upper()}{which[1:]} {verb} {_total(listing)}."


def _total(listing: dict[str, Any]) -> str:
    return f"{plural(int(listing['total_files']), 'file')}, {human_size(int(listing['total_size']))} in all"


# --- the intents -------------------------------------------------------------------------------------------


def _largest(evidence: Evidence, question: Question) -> Reply:
    if not evidence.results:
        narrowed = _narrowed(question)
        calls = (
            call("list_files", **narrowed, sort="size", limit=max(10, question.number)),
            call("list_files", **_top(question), recursive=False),
        )
        return Reply("I list the largest files, and beside that what is at the top.", calls)
    by_size = _listing(evidence, recursive=True)
    files: list[dict[str, Any]] = by_size["files"][: question.number] if by_size else []
    if by_size is None:
        return Reply("I could not list the files, so I cannot say which are the largest.")
    if not files:
        return Reply(f"There are no files {_which(question)}.")
    if not evidence.asked_for("read_file") and "read_file" in evidence.tools:
        paths = [each["path"] for each in files]
        about = _project_file(_listing(evidence, recursive=False))
        return Reply(
            f"Now I look into the {plural(len(paths), 'file')} at the top of that list, to see what they are.",
            _heads([*paths, *([about] if about and about not in paths else [])], 40),
        )
    return Reply("\n".join(_largest_answer(evidence, question, by_size, files)))


def _largest_answer(
    evidence: Evidence, question: Question, by_size: dict[str, Any], files: list[dict[str, Any]]
) -> Iterator[str]:
    readings = _readings(evidence)
    yield f"The largest file {_which(question)} is {sized(files[0])}, of {_total(by_size)}."
    yield ""
    for number, entry in enumerate(files, 1):
        reading = readings.get(entry["path"])
        what = file_line(reading) if reading else "I could not look into it"
        yield f"{number}. {sized(entry)}: {what}"
    total = int(by_size["total_size"])
    if len(files) > 1 and total:
        share = sum(int(entry["size"]) for entry in files) / total
        yield ""
        yield f"These {len(files)} make up {share:.0%} of all bytes."
    if (about := _project_file(_listing(evidence, recursive=False))) and (reading := readings.get(about)):
        yield f"{about} begins: {gist(str(reading.get('text', '')))}"
    yield from _left_out(by_size)


def _left_out(listing: dict[str, Any]) -> Iterator[str]:
    if notes := listing.get("notes"):
        yield ""
        yield f"({'; '.join(notes)})"


def _project_file(top: dict[str, Any] | None) -> str | None:
    """The file at the top level that tells most likely what all this is."""
    paths = [str(entry["path"]) for entry in (top or {}).get("files", [])]
    names = {path.rpartition("/")[2].lower(): path for path in paths}
    return next((names[name] for name in _ABOUT if name in names), None)


def _narrowed(question: Question) -> dict[str, Any]:
    """The arguments that narrow a call, those that say nothing left out."""
    given = {"path": question.path, "pattern": question.pattern}
    return {name: value for name, value in given.items() if value not in (".", "*")}


def _top(question: Question) -> dict[str, Any]:
    return _narrowed(replace(question, pattern="*"))


def _count(evidence: Evidence, question: Question) -> Reply:
    if not evidence.results:
        narrowed = _narrowed(question)
        return Reply(
            "I count files and lines at the same time.",
            (
                call("list_files", **narrowed, limit=1),
                call("search_files", text="", **narrowed, count_only=True, limit=5),
            ),
        )
    listing = _listing(evidence, recursive=True)
    lines = next(iter(evidence.told("search_files")), None)
    answer: list[str] = []
    if listing:
        answer.append(_there_are(question, listing))
        types = [f"{count:,} {suffix}" for suffix, count in list(listing["types"].items())[:8]]
        if len(types) > 1:
            answer.append(f"By type: {', '.join(types)}.")
    if lines:
        text_files = plural(int(lines["files_searched"]), "text file")
        answer.append(f"They hold {plural(int(lines['total']), 'line')}, in {text_files}.")
        ranked = sorted(lines["counts"].items(), key=lambda item: -item[1])[:3]
        if len(ranked) > 1:
            answer.append("Most lines: " + ", ".join(f"{path} ({count:,})" for path, count in ranked) + ".")
    return Reply("\n".join(answer) or "I could not count anything.")


def _search(evidence: Evidence, question: Question) -> Reply:
    if not evidence.results:
        calls = [call("search_files", text=question.subject, **_narrowed(question), ignore_case=True)]
        if not set(question.subject) & set("*?[]{},/\\ "):
            named = replace(question, pattern=f"*{question.subject}*")
            calls.append(call("list_files", **_narrowed(named), limit=20))
        return Reply(f"I search for “{question.subject}”, in the files and in their names.", tuple(calls))
    found = next(iter(evidence.told("search_files")), None)
    named = (_listing(evidence, recursive=True) or {}).get("files", [])
    answer: list[str] = []
    if found:
        matches: list[dict[str, Any]] = found["matches"]
        at_least = "at least " if found["truncated"] else ""
        lines, files = plural(len(matches), "line"), plural(len(found["counts"]), "file")
        nowhere = f"in none of the {plural(int(found['files_searched']), 'text file')} {_which(question)}."
        where = f"in {at_least}{lines} of {files}:" if matches else nowhere
        answer.append(f"“{question.subject}” is {where}")
        answer += [f"- {each['path']}:{each['line']}: {shortened(each['text'])}" for each in matches[:20]]
        if len(matches) > 20:
            answer.append(f"- … and {len(matches) - 20} more lines")
    if named:
        answer.append("Files of that name: " + ", ".join(sized(entry) for entry in named[:10]) + ".")
    return Reply("\n".join(answer) or "I could not search.")


def _read(evidence: Evidence, question: Question) -> Reply:
    if not evidence.results:
        # Looking first spares a failing call: people say "the readme" and mean README.md.
        looking = call("list_files", pattern=f"{question.subject}*", limit=20)
        return Reply(f"I look for {question.subject}.", (looking,))
    files: list[dict[str, Any]] = (_listing(evidence, recursive=True) or {}).get("files", [])
    if not files and not evidence.asked_for("read_file"):
        return Reply(f"There is no file here whose name begins with {question.subject}.")
    if not evidence.asked_for("read_file"):
        ranked = sorted(files, key=lambda each: (_distance(each["path"], question.subject), each["path"]))
        exact = [each for each in ranked if _distance(each["path"], question.subject)[0] == 0]
        chosen = (exact or ranked)[:3]
        paths = [str(each["path"]) for each in chosen]
        return Reply(f"I read {', '.join(paths)}.", _heads(paths, 400))
    answer: list[str] = []
    for path, details in _readings(evidence).items():
        if question.counted:
            lines = details.get("lines")
            held = "no lines that I can count" if lines is None else plural(int(lines), "line")
            answer.append(f"{path} has {held}, {human_size(int(details['size']))} ({details['kind']}).")
            continue
        answer += [f"{path}, {human_size(int(details['size']))}: {file_line(details)}"]
        text = str(details.get("text", ""))
        if question.in_full and text:
            answer += ["", *text.splitlines()[:60], ""]
        elif parts := outline(text):
            answer += ["Its parts:", *(f"- {part}" for part in parts)]
        elif text:
            answer += ["Its first lines:", *(f"    {shortened(line)}" for line in text.splitlines()[:8])]
    return Reply("\n".join(answer) or "I could not read it.")


def _distance(path: str, subject: str) -> tuple[int, int]:
    name = path if "/" in subject else path.rpartition("/")[2]
    same = name.lower() == subject.lower() or name.lower().rpartition(".")[0] == subject.lower()
    return (0 if same else 1, path.count("/"))


def _list(evidence: Evidence, question: Question) -> Reply:
    if not evidence.results:
        say = (
            "I list what is here, and the largest files."
            if evidence.question
            else f"I have no rule for that question. {ABILITIES} I look at what is here, for a start."
        )
        # A folder's own listing shows names only, so a pattern goes to the one that looks everywhere.
        narrowed = _narrowed(question)
        here = call("list_files", **_top(question), recursive=False)
        return Reply(say, (here, call("list_files", **narrowed, sort="size", limit=15)))
    top, everything = _listing(evidence, recursive=False), _listing(evidence, recursive=True)
    if top is None or everything is None:
        return Reply("I could not list the files.")
    if (
        not evidence.asked_for("read_file")
        and "read_file" in evidence.tools
        and (about := _project_file(top))
    ):
        return Reply(f"I also read {about}.", _heads([about], 60))
    answer = [_there_are(question, everything)]
    if question.pattern == "*":
        folders = [f"{path}/" for path in top["folders"]]
        names = [str(entry["path"]) for entry in top["files"]]
        answer += [f"Folders: {', '.join(folders)}."] if folders else []
        answer += [f"Files at the top: {', '.join(names)}."] if names else []
    elif everything["files"]:
        answer += [f"- {sized(entry)}" for entry in everything["files"]]
        if everything["truncated"]:
            answer.append("- … (the largest are shown)")
    for path, details in _readings(evidence).items():
        answer.append(f"{path}: {file_line(details)}")
    if evidence.question is None:
        answer += ["", f"To your question itself I have no answer. {ABILITIES}"]
    return Reply("\n".join(answer))


_INTENTS: dict[Intent, Callable[[Evidence, Question], Reply]] = {
    "largest": _largest,
    "count": _count,
    "search": _search,
    "read": _read,
    "list": _list,
}


def _about_attached(evidence: Evidence) -> str:
    """An answer about text that came with the question, which no tool is needed for."""
    lines = evidence.attached.splitlines()
    if len(lines) >= 2 and lines[0] == "<stdin>" and lines[-1] == "</stdin>":
        lines = lines[1:-1]
    words = sum(len(line.split()) for line in lines)
    answer = [f"The text you gave has {plural(len(lines), 'line')} and {plural(words, 'word')}."]
    question = evidence.question
    if question and question.intent == "search":
        wanted = question.subject.lower()
        found = [(number, line) for number, line in enumerate(lines, 1) if wanted in line.lower()]
        answer.append(f"“{question.subject}” is in {plural(len(found), 'line')} of it{':' if found else '.'}")
        return "\n".join([*answer, *(f"- {number}: {shortened(line)}" for number, line in found[:20])])
    text = "\n".join(lines)
    if begins := gist(text):
        answer.append(f"It begins: {begins}")
    if parts := outline(text):
        answer += ["Its parts:", *(f"- {part}" for part in parts)]
    answer.append("More than that takes a real model.")
    return "\n".join(answer)
