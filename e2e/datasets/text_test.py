"""text.py: what counts as a paragraph."""

import pytest

import cache
import text

EIGHT = "one two three four five six seven eight"


@pytest.mark.parametrize(
    ("document", "want"),
    [
        (f"<p>{EIGHT}</p>", [EIGHT]),
        (f"<p>one two\n   three <b>four</b> five six seven&#32;eight</p>", [EIGHT]),
        ("<p>too short</p>", []),
        (f"<h1>{EIGHT}</h1><p>{EIGHT}</p>", [EIGHT]),
        (f"<ul><li>{EIGHT}</li><li><p>{EIGHT} nine</p></li></ul>", [EIGHT, EIGHT + " nine"]),
        (f"<pre>{EIGHT}</pre><script>{EIGHT}</script>", []),
        (f"<p>{EIGHT} <pre>code</pre> nine</p>", [EIGHT + " nine"]),
        ("", []),
    ],
    ids=["plain", "white space and marks", "short", "heading", "list", "code", "code inside", "empty"],
)
def test_paragraphs(document, want):
    assert text.paragraphs(document) == want


def test_the_manuals_give_one_paragraph_a_line(tmp_path):
    made = cache.make(tmp_path, "text", lambda out: text.fill(out, 300))
    lines = (made / "paragraphs.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines)) == 300
    assert min(len(line.split()) for line in lines) >= text.WORDS_MINIMUM
