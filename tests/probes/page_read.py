"""Tables for pages, and reading a page as a browser would."""

from html.parser import HTMLParser

from plumbline.builders.core import front_matter, parquet

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """What a browser would make of the page: ids, links, headings, tables."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.tags, self.requests, self.open = [], [], [], []
        self.headings, self.tables, self.words = [], [], ""
        self.feed(text)
        self.close()

    @property
    def rows(self):
        """The rows of all tables."""
        return [row for table in self.tables for row in table]

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        for name in ("src", "href", "xlink:href", "data", "action", "srcset"):
            if name in given:
                self.requests.append(given[name])
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and "table" in self.open:
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data
        if self.open and self.open[-1] in ("h2", "h3"):
            self.headings.append(data)
        if {"th", "td"} & {*self.open[-2:]}:
            self.tables[-1][-1][-1] += data


def put(folder, schemas, tables):
    """Write tables with what states their labels, as an analysis does."""
    folder.mkdir(parents=True)
    for name, table in tables.items():
        parquet.write_table(table, schemas[name].arrow(), folder / f"{name}.parquet")
    origin = front_matter.Origin([], "make it", "0.1.0")
    front_matter.write(folder, {name: schemas[name] for name in tables}, origin)
