"""One visit in the forms in which pages are captured, written by those who define them: warcio, Python's email."""

import csv
import gzip
import json
from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

START = 1_700_000_000  # seconds since 1970
SHOP = "https://shop.example"


class Writer(WARCWriter):
    """warcio's, without temporary files that it leaves open."""

    @classmethod
    def _create_temp_file(cls) -> BytesIO:
        return BytesIO()


class Shown(NamedTuple):
    """A page that was captured so many seconds after the start."""

    path: str
    at: float
    html: str

    @property
    def url(self) -> str:
        return self.path if ":" in self.path else SHOP + self.path

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(START + self.at, UTC)


def page(title: str, *links: str) -> str:
    """A page with a field for searches and some links."""
    named = "".join(f'<p><a href="/{link}" id="to_{link}"><b>{link.capitalize()}</b></a></p>' for link in links)
    return f'<!doctype html><title>{title}</title><h1>{title}</h1><form><input type="search" name="q"></form>{named}'


VISIT = [
    Shown("/", 0, page("Home", "sale", "help")),
    Shown("/search?q=kettle", 10, page("Results", "kettle", "pot")),
    Shown("/kettle", 20, page("Kettle für 2 l", "buy")),
]


def entry(shown: Shown, **response: Any) -> dict[str, Any]:
    """An entry of a HAR file."""
    content = {"mimeType": "text/html; charset=utf-8", "size": len(shown.html.encode()), "text": shown.html}
    return {
        "startedDateTime": shown.time.isoformat().replace("+00:00", "Z"),
        "_resourceType": "document",
        "request": {"method": "GET", "url": shown.url},
        "response": {"status": 200, "content": content, **response},
    }


def write_har(path: Path, entries: Iterable[dict[str, Any] | Shown]) -> Path:
    listed = [entry(one) if isinstance(one, Shown) else one for one in entries]
    content = json.dumps({"log": {"version": "1.2", "creator": {}, "entries": listed}}).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_warc(path: Path, pages: Iterable[Shown], **headers: str) -> Path:
    with path.open("wb") as file:
        writer = Writer(file, gzip=path.suffix == ".gz")
        for shown in pages:
            add_response(writer, shown, shown.html.encode(), **headers)
    return path


def add_response(
    writer: Any, shown: Shown, body: bytes, status: str = "200 OK", warc: dict[str, str] | None = None, **headers: str
) -> None:
    given = {"Content_Type": "text/html; charset=utf-8", **headers}
    http = StatusAndHeaders(status, [(k.replace("_", "-"), v) for k, v in given.items()], protocol="HTTP/1.1")
    date = {"WARC-Date": shown.time.strftime("%Y-%m-%dT%H:%M:%SZ"), **(warc or {})}
    record = writer.create_warc_record(shown.url, "response", BytesIO(body), http_headers=http, warc_headers_dict=date)
    writer.write_record(record)


def write_mhtml(path: Path, shown: Shown, encoding: str = "quoted-printable") -> Path:
    mail = EmailMessage()
    mail["Snapshot-Content-Location"] = shown.url
    mail["Date"] = shown.time
    mail["Subject"] = "A page"
    mail.set_content(shown.html, subtype="html", cte=encoding)
    mail.add_related(b"body {}", maintype="text", subtype="css")
    content = mail.as_bytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_list(folder: Path, pages: Iterable[Shown]) -> Path:
    folder.mkdir(exist_ok=True)
    with (folder / "pages.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "url", "timestamp"])
        for number, shown in enumerate(pages):
            (folder / f"{number}.html").write_bytes(shown.html.encode())
            rows.writerow([f"{number}.html", shown.url, shown.time.isoformat()])
    return folder


def write_form(form: str, folder: Path, pages: list[Shown]) -> Path:
    """The pages in one of the forms; what is returned is a source of the importer."""
    folder.mkdir(exist_ok=True)
    if form.startswith("har"):
        return write_har(folder / f"visit.{form}", pages)
    if form.startswith("warc"):
        return write_warc(folder / f"visit.{form}", pages)
    if form == "list":
        return write_list(folder, pages)
    for number, shown in enumerate(pages):
        write_mhtml(folder / f"{number}.mhtml", shown, "base64" if number % 2 else "quoted-printable")
    return folder


def base64_entry(shown: Shown, body: bytes, mime_type: str) -> dict[str, Any]:
    content = {"mimeType": mime_type, "size": len(body), "encoding": "base64", "text": b64encode(body).decode()}
    return entry(shown, content=content)
