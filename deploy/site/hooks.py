"""What the site shows besides docs/: the pages at the top of the checkout, and files that a page links to."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.superfences import fence_code_format

ROOT = Path(__file__).parents[2]
TOP = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SCOPE.md": "scope.md",
}
LINK = re.compile(r"(?<=\]\()(?P<path>[^)#:]+)(?P<anchor>#[^)]*)?(?=\))")
MERMAID = ROOT / ".venv-web" / "mermaid.min.js"
RANKS = {
    "decisions/": 0.1,
    "track-record": 0.1,
    "changelog": 0.1,
    "benchmarks": 0.3,
    "quick-start": 3,
    "sandbox-guide": 2,
    "runbook": 2,
    "host-guide": 2,
}  # in a search, by the beginning of the path
DRAWN = "assets/mermaid.min.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have diagrams drawn if mermaid was brought along; else they are shown as their text."""
    if MERMAID.exists():
        fence = {"name": "mermaid", "class": "mermaid", "format": fence_code_format}
        config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the top, and files outside of docs/ that a page links to."""
    for name, page in TOP.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for file in [*files.documentation_pages()]:
        for found in LINK.finditer(file.content_string):
            path = _in_checkout(file.src_uri, found["path"])
            is_other = not path.startswith("docs/") and path not in TOP and (ROOT / path).is_file()
            if is_other and f"files/{path}" not in files.src_uris:
                files.append(File.generated(config, f"files/{path}", abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "assets/site.css", abs_src_path=str(Path(__file__).with_name("site.css"))))
    if MERMAID.exists():
        files.append(File.generated(config, DRAWN, abs_src_path=str(MERMAID)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links lead to where a page or a file is in the site."""
    here = posixpath.dirname(page.file.src_uri)
    rank = next((rank for part, rank in RANKS.items() if page.file.src_uri.startswith(part)), 1)
    page.meta.setdefault("search", {})["boost"] = rank

    def moved(found: re.Match[str]) -> str:
        path = _in_checkout(page.file.src_uri, found["path"])
        if path.startswith("docs/"):
            there = path.removeprefix("docs/")
        elif path in TOP:
            there = TOP[path]
        else:
            there = f"files/{path}"
        return posixpath.relpath(there, here or ".") + (found["anchor"] or "")

    return LINK.sub(moved, markdown)


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Load what draws diagrams from the site itself, where there are some; the theme asks another host otherwise."""
    if 'class="mermaid"' not in output:
        return output
    path = posixpath.relpath(DRAWN, posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace("</head>", f'<script src="{path}"></script></head>', 1)


def _in_checkout(page: str, link: str) -> str:
    """Return which file of the checkout a link of a page names."""
    at_top = {there: name for name, there in TOP.items()}
    source = at_top.get(page, page.removeprefix("files/") if page.startswith("files/") else f"docs/{page}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
