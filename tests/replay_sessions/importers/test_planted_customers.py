"""Invented customers whose values are written into shops' real pages: what is left of them, and what else changes."""

import csv
import gzip
import html
import json
import re
import unicodedata
from collections.abc import Iterator
from random import Random

import pytest

from replay_sessions import SessionStore
from replay_sessions.__main__ import main
from replay_sessions.simplify import simplify

pytestmark = pytest.mark.long

_FIRST = (
    "Anna",
    "Zoë",
    "José",
    "Rose",
    "Mark",
    "Grace",
    "Will",
    "Max",
    "Jürgen",
    "Łukasz",
    "Søren",
    "Jean-Luc",
    "Björn",
)
_LAST = (
    "Brown",
    "Green",
    "O'Brien",
    "Müller",
    "García",
    "Black",
    "van-der-Berg",
    "Nowak",
    "Økland",
    "Young",
    "Lefèvre",
)
_STREETS = ["Orchard Close", "Main Street", "Mühlenweg", "Rue de la Paix", "Park Lane", "Königsallee"]
_CITIES = ["Leeds", "Köln", "New York", "Paris", "San José"]
_PLAIN = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "ß": "s"})
Customer = dict[str, str]


def make_customer(number: int, draw: Random) -> Customer:
    first, last = draw.choice(_FIRST), draw.choice(_LAST)
    local = re.sub(r"[^a-z]", "", plain(f"{first}{last}"))
    return {
        "user_id": f"u{number:02}",
        "first_name": first,
        "last_name": last,
        "email": f"{local}{draw.randint(1, 99)}@example.org",
        "phone": f"+49 {draw.randint(151, 179)} {draw.randint(1_000_000, 9_999_999)}",
        "street": f"{draw.randint(1, 199)} {draw.choice(_STREETS)}",
        "city": draw.choice(_CITIES),
        "postcode": str(draw.randint(10_000, 99_999)),
        "order_id": f"{draw.randint(100, 999)}-{draw.randint(1_000_000, 9_999_999)}",
    }


def lines_about(customer: Customer) -> Iterator[str]:
    """What shops write of their customers."""
    first, last, street, city = (customer[name] for name in ("first_name", "last_name", "street", "city"))
    code, phone = customer["postcode"], re.sub(r"\D", "", customer["phone"])
    yield f'<header><a href="/account" title="{first} {last}">Hello, {first}</a></header>'
    yield f"<div>Moin {first}</div><p>{last.upper()}, {first.upper()}</p>"
    yield f'<a id=lists href="/lists/{first}">{first}\'s lists</a>'
    yield "<p>{} {}</p>".format(*(html.escape(name).replace("ü", "&uuml;") for name in (first, last)))
    yield f"<p>Deliver to {first} - {city} {code}</p><p>{street}<br>{code} {city}</p>"
    yield f"<address>{first} {last}<br>{street}<br>{city}, {code}</address><p>{street.upper()}, {code} {city}</p>"
    yield f"<p>{customer['email'].upper()}</p><p>0{phone[2:5]}/{phone[5:8]} {phone[8:]}</p><p>{customer['phone']}</p>"
    yield f'<input name=x value="{first} {last}"><textarea>{street}</textarea>'
    yield f'<img src=a.png alt="{first} {last} profile">'
    yield f"<p>Order {customer['order_id']} was shipped to {last}</p>"


def plain(text: str) -> str:
    """A text's words, without case, accents and punctuation: a rule of its own, not the product's."""
    text = html.unescape(text).translate(_PLAIN)
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return f" {' '.join(re.findall('[a-z0-9]+', letters))} "


def texts(page: str) -> list[str]:
    return [text.strip() for text in re.split(r"<[^>]*>", page)]


@pytest.fixture
def stores(shared_data, tmp_path) -> tuple[list[Customer], SessionStore, SessionStore]:
    """The customers, and the store of their visits with and without their table."""
    draw = Random(7)
    customers = [make_customer(number, draw) for number in range(12)]
    files = sorted((shared_data / "raw_pages").rglob("*.html.gz"), key=lambda file: file.stat().st_size)[:40]
    visits, rows = tmp_path / "visits", []
    visits.mkdir()
    for customer in customers:
        for number, file in enumerate(draw.sample(files, 2)):
            page = gzip.decompress(file.read_bytes()).decode("utf-8", "replace")
            start = re.search(r"<body[^>]*>", page)
            page = page[: start.end()] + "".join(lines_about(customer)) + page[start.end() :]
            name = f"{customer['user_id']}_{number}.html"
            (visits / name).write_text(page)
            row = {"session_id": customer["user_id"], "user_id": customer["user_id"], "page": name}
            url = f"https://shop.example/u/{customer['first_name']}?e={customer['email']}"
            rows.append({**row, "type": "click", "selector": "#lists", "url": url})
    (visits / "actions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with (tmp_path / "customers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, customers[0])
        writer.writeheader()
        writer.writerows(customers)
    command = f"import raw {visits} --workers 1 --out".split()
    assert main([*command, str(tmp_path / "plain")]) == 0
    assert main([*command, str(tmp_path / "clean"), "--customers", str(tmp_path / "customers.csv")]) == 0
    return customers, SessionStore.open(tmp_path / "clean"), SessionStore.open(tmp_path / "plain")


def test_the_values_of_customers_go_and_the_shops_texts_stay(stores, tmp_path):
    customers, clean, raw = stores
    planted = missed = lines = changed = 0
    left = []
    for customer in customers:
        own = {plain(text) for text in texts(simplify("".join(lines_about(customer)), private_data=False).html)}
        values = [plain(value) for name, value in customer.items() if name not in ("user_id", "phone")]
        values += [plain(customer["phone"]), re.sub(r"\D", "", customer["phone"])[-7:]]
        pairs = zip(clean.session(customer["user_id"]).steps, raw.session(customer["user_id"]).steps, strict=True)
        for step, before in pairs:
            assert [value for value in values if value in plain(step.url or "")] == []
            assert "lists" in str(step.action)
            assert plain(customer["first_name"]).strip() not in str(step.action)
            for text, old in zip(texts(step.page), texts(before.page), strict=True):
                if plain(old) not in own:
                    lines += 1
                    changed += text != old
                    continue
                here = [value for value in values if value in plain(old)]
                planted += len(here)
                left += [(customer["user_id"], value, text) for value in here if value in plain(text)]
    missed = len(left)
    (tmp_path / "missed.txt").write_text("\n".join(map(repr, left)))
    assert planted > 300
    assert missed <= 0.03 * planted, left
    assert lines > 3_000
    assert changed <= 0.002 * lines
