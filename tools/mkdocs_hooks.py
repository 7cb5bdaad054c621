# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What mkdocs asks while it builds the site: which files there are, and the text of each page.
docs/site/mkdocs.yml names this file; the package `beowire` does not need mkdocs."""

from pathlib import Path
from typing import Any

from beowire.documents import site
from beowire.documents.links import slug
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc


def _root(config: MkDocsConfig) -> Path:
    """The checkout whose docs/site/mkdocs.yml this is."""
    return Path(config.config_file_path).parents[2]


class Shown(File):
    """A file of the repository that has a page, whatever the end of its name is."""

    def is_documentation_page(self) -> bool:
        return True


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = _root(config)
    for name in site.files(root):
        kind = File if site.is_picture(name) else Shown
        file = kind(name, str(root), config.site_dir, True, dest_uri=site.address(name))
        files.append(file)
    return files


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:
    name = page.file.src_uri
    if name.endswith(".md"):
        return site.plain_fences((_root(config) / name).read_text())
    if site.is_manual(name):
        return f"# {site.title(name)}\n"
    return site.fenced(name, (_root(config) / name).read_text())


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    name = page.file.src_uri
    if not site.is_manual(name):
        return html
    body = site.manual_html(_root(config) / name)
    title = site.title(name)
    sections: Any = site.manual_headings(body)
    page.toc = get_toc([{"level": 1, "id": slug(title), "name": title, "children": sections}])
    return f"{html}\n{body}"
