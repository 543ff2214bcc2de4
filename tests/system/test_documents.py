"""What the documents say works: their SQL runs, their links lead somewhere, their commands exist."""

import re
import subprocess

import pytest

import harness

DOCUMENTS = sorted([*harness.ROOT.glob("*.md"), *harness.ROOT.glob("docs/*.md"), *harness.ROOT.glob("bench/*.md")])
# Pages whose SQL is an author's, in the order in which a reader meets it.
GUIDES = [harness.ROOT / "README.md", harness.ROOT / "docs" / "schedules.md"]
# Where a statement must be refused its comment says so.
REFUSED = "-- refused"


def blocks(page, language):
    """(line, text) of each fenced block of the language."""
    found, start, lines = [], None, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if start is None and line.strip() == f"```{language}":
            start, lines = number + 1, []
        elif start is not None and line.strip() == "```":
            found.append((start, "\n".join(lines)))
            start = None
        elif start is not None:
            lines.append(line)
    return found


def prose(page):
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page):
    """As GitHub makes them of headings."""
    found = set()
    for title in re.findall(r"^#+ +(.*)$", prose(page), flags=re.M):
        text = re.sub(r"[`*]", "", title.strip()).lower()
        found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', page.read_text(encoding="utf-8")))


def name_of(page):
    return str(page.relative_to(harness.ROOT))


def test_sql_of_the_guides_runs_as_an_author_and_every_schedule_can_be_planned(installation):
    author = installation.connect()
    author.execute("SET ROLE report_author")
    ran = 0
    for page in GUIDES:
        for line, text in blocks(page, "sql"):
            if text.startswith(REFUSED):
                with pytest.raises(Exception, match="."):
                    author.execute(text)
            else:
                try:
                    author.execute(text)
                except Exception as e:
                    raise AssertionError(f"{name_of(page)}:{line}: {e}") from e
            ran += 1
    assert ran >= 5, "the guides lost their examples"
    db = installation.connect()
    db.execute("INSERT INTO reports.queue (name) VALUES ('unrelated') ON CONFLICT DO NOTHING")
    installation.start_scheduler()
    installation.wait_until(
        lambda: db.execute("SELECT count(*) = 0 FROM reports.schedule_change").fetchone()[0],
        30, "the leader takes all examples in")
    problems = db.execute("SELECT schedule, problem FROM reports.schedule_progress WHERE problem IS NOT NULL").fetchall()
    assert problems == []


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.exists(), f"{name_of(page)}: {target} does not exist"
        if anchor and other.suffix == ".md":
            assert anchor in anchors(other), f"{name_of(page)}: {target}: no such heading"


def test_commands_that_pages_show_exist():
    text = subprocess.run([harness.build() / "reportctl", "help", "--markdown"], text=True, check=True,
                          capture_output=True, stdin=subprocess.DEVNULL).stdout
    known = set(re.findall(r"^#+ `?(?:reportctl )?([a-z-]+)", text, flags=re.M)) | {"help"}
    for page in DOCUMENTS:
        for block_line, block in [b for kind in ("", "sh", "bash") for b in blocks(page, kind)]:
            for word in re.findall(r"^\s*(?:\$ )?reportctl ([a-z][a-z-]*)", block, flags=re.M):
                assert word in known, f"{name_of(page)}:{block_line}: there is no command {word}"
