"""Private data of made-up people of twelve countries, planted where shops and shoppers write such things.

The people come from the library Faker, by a seed; the sentences and pages around them are plain ones. The countries of
`held_out` and every third product text were set apart before anything was tuned on the others; what they showed was
mended once. Those of `unseen` were looked at when all was done, and nothing was changed after them.
"""

import html
import random
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Literal, NamedTuple, get_args
from urllib.parse import quote, quote_plus, unquote_plus

from faker import Faker

from replay_sessions.simplify import simplify
from replay_sessions.simplify.names import slug
from replay_sessions.simplify.private_data import remove_from_text, remove_from_url

__all__ = ["KINDS", "LOCALES", "PLACES", "Part", "Planted", "is_changed", "is_left", "planted_cases", "product_texts"]

Kind = Literal["name", "address", "phone", "card", "email"]
Place = Literal["header", "label", "attribute", "url", "rationale", "goal"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PLACES: tuple[Place, ...] = get_args(Place)
Part = Literal["tuned", "held_out", "unseen"]
LOCALES: dict[Part, tuple[str, ...]] = {
    "tuned": ("en_US", "de_DE", "fr_FR", "es_ES", "nl_NL", "ja_JP"),
    "held_out": ("en_GB", "en_IN", "it_IT", "sv_SE", "pl_PL", "pt_BR"),
    "unseen": (
        "en_CA",
        "en_AU",
        "de_AT",
        "de_CH",
        "da_DK",
        "no_NO",
        "fi_FI",
        "cs_CZ",
        "pt_PT",
        "ru_RU",
        "ko_KR",
        "zh_CN",
    ),
}

_TEMPLATES: dict[Place, dict[Kind, list[str]]] = {
    "header": {
        "name": [
            '<header><a href="/account">{}</a><a href="/cart">Cart</a></header>',
            '<header><div class="user-name">{}</div><a href="/logout">Log out</a></header>',
            "<header><span>Hello, {}</span><a href='/orders'>Orders</a></header>",
            '<header><button aria-haspopup="menu" class="account-menu">{}</button></header>',
            '<nav><a href="/my-account"><svg></svg><span>{}</span></a></nav>',
        ],
        "address": [
            "<header><a href='/location'>Deliver to {}</a></header>",
            "<header><span>Delivering to</span><span>{}</span></header>",
            "<header><div class='delivery'>{}</div></header>",
        ],
        "phone": [
            "<header><div class='account'>{}</div></header>",
            "<header><a href='/account'>Signed in with {}</a></header>",
            "<header><span>Your number: {}</span></header>",
        ],
        "card": [
            "<header><a href='/wallet'>Card {}</a></header>",
            "<header><span>Paying with {}</span></header>",
        ],
        "email": [
            '<header><a href="/account">{}</a></header>',
            "<header><span>Signed in as {}</span></header>",
        ],
    },
    "label": {
        "name": [
            "<p>Recipient: {}</p>",
            "<table><tr><th>Name</th><td>{}</td></tr></table>",
            "<dl><dt>Customer</dt><dd>{}</dd></dl>",
            "<p>Ship to <b>{}</b></p>",
            "<div><div>Contact name</div><div>{}</div></div>",
            "<p>Cardholder: {}</p>",
        ],
        "address": [
            "<p>Shipping address: {}</p>",
            "<div><h3>Delivery address</h3><p>{}</p></div>",
            "<table><tr><td>Address</td><td>{}</td></tr></table>",
            "<p>{}</p>",
        ],
        "phone": [
            "<p>Phone: {}</p>",
            "<table><tr><td>Mobile</td><td>{}</td></tr></table>",
            "<dl><dt>Telephone number</dt><dd>{}</dd></dl>",
            "<p>Tel. {}</p>",
        ],
        "card": [
            "<p>Card number: {}</p>",
            "<table><tr><td>Credit card</td><td>{}</td></tr></table>",
            "<p>{}</p>",
        ],
        "email": ["<p>E-mail: {}</p>", "<table><tr><td>Contact</td><td>{}</td></tr></table>", "<p>{}</p>"],
    },
    "attribute": {
        "name": [
            '<button aria-label="Account menu for {}">Account</button>',
            '<a href="/me" title="{}"><svg></svg></a>',
            '<a href="/me"><img alt="Profile picture of {}" src="a.png"></a>',
            '<input name="recipient" value="{}">',
            '<a href="/me" aria-label="Signed in as {}">Me</a>',
            '<button aria-label="Edit address of {}">Edit</button>',
        ],
        "address": [
            '<button aria-label="Change delivery address: {}">Change</button>',
            '<a href="/l" title="{}">Location</a>',
            '<img alt="Map of {}" src="m.png">',
            '<input name="street" value="{}">',
        ],
        "phone": [
            '<a href="tel:1" aria-label="Call {}">Call</a>',
            '<input name="contact_phone" value="{}">',
            '<a href="/me" title="Phone {}">Me</a>',
        ],
        "card": [
            '<button aria-label="Pay with card {}">Pay</button>',
            '<input name="card" value="{}">',
            '<img alt="Visa {}" src="v.png">',
        ],
        "email": [
            '<button aria-label="Account {}">Account</button>',
            '<input name="login" value="{}">',
            '<a href="/me" title="{}">Me</a>',
        ],
    },
    "url": {
        "name": [
            "https://shop.example/account?name={}",
            "https://shop.example/checkout/address?first=1&fullName={}&step=2",
            "https://shop.example/gifts?recipient={}#new",
        ],
        "address": [
            "https://shop.example/checkout?address={}",
            "https://shop.example/delivery?shipping_address={}&day=mon",
            "https://shop.example/stores?near={}",
        ],
        "phone": [
            "https://shop.example/account?phone={}",
            "https://shop.example/verify?tel={}&code=1",
            "https://shop.example/login?mobile={}",
        ],
        "card": ["https://shop.example/pay?card={}", "https://shop.example/pay?cardNumber={}&cvc=1"],
        "email": [
            "https://shop.example/login?email={}",
            "https://shop.example/unsubscribe/{}",
            "https://shop.example/reset?user={}&next=/cart",
        ],
    },
    "rationale": {
        "name": [
            "My name is {} and I want to see whether my order has shipped.",
            "I am buying this for {}, who has a birthday next week.",
            "It is addressed to {}, so I check the recipient once more.",
            "I sign in as {} to see my lists.",
        ],
        "address": [
            "I live at {}, so I want to know whether they deliver there.",
            "It should be sent to {} before Friday.",
            "I change the delivery address to {}.",
        ],
        "phone": [
            "They can call me at {} if nobody is at home.",
            "I enter my phone number {} for the courier.",
            "My number is {}.",
        ],
        "card": ["I pay with my card {}.", "I want to use {} instead of the old card."],
        "email": ["I want the receipt sent to {}.", "My e-mail is {}, I use it to sign in."],
    },
    "goal": {
        "name": [
            "Buy a red kettle for {}",
            "Order flowers and have them delivered to {}",
            "Find a gift for my friend {} for less than $40",
        ],
        "address": ["Have a red kettle delivered to {}", "Find a sofa that ships to {}"],
        "phone": ["Buy a kettle, and have the courier call {}", "Update the phone number of the account to {}"],
        "card": ["Buy a kettle with the card {}", "Replace the stored card by {}"],
        "email": ["Send a gift card to {}", "Change the account's e-mail to {}"],
    },
}
_PAGE = "<title>Kettles</title><body>{}<main><h1>Red kettle, 1.7 l</h1><p>$29.99</p><button>Add to cart</button></main>"
_HOME = "<title>Kettles</title><body><main><h1>Red kettle, 1.7 l</h1>{}<button>Add to cart</button></main>"


class Planted(NamedTuple):
    """Something private in the place where it was planted.

    Attributes:
        text: The page, address or sentence with the secret in it.
        secret: The secret, its lines apart by ", ".
    """

    locale: str
    kind: Kind
    place: Place
    text: str
    secret: str

    def parts(self) -> list[str]:
        """What must not be left: each word of a name that is no small one, each line of an address that holds a number,
        else the whole."""
        if self.kind == "name":
            return [word for word in re.findall(r"[^\W\d_]+", self.secret) if len(word) > 1 and not word.islower()]
        if self.kind == "address":
            return [line for line in self.secret.split(", ") if any(map(str.isdigit, line)) and len(line) > 3]
        return [self.secret]


def planted_cases(seed: int, part: Part) -> Iterator[Planted]:
    """One case for each kind of private data in each place and country of a part: 180, of the unseen ones 360."""
    for locale in LOCALES[part]:
        faker = Faker(locale)
        faker.seed_instance(seed)
        draw = random.Random(f"{seed} {locale}")
        for place in PLACES:
            for kind in KINDS:
                template = draw.choice(_TEMPLATES[place][kind])
                secret = ", ".join(line.strip() for line in _made_up(faker, kind).splitlines())
                yield Planted(locale, kind, place, _filled(template, secret, place, draw), secret)


def product_texts(part: Part) -> list[str]:
    """Product texts that look private and are not."""
    file = resources.files("benchmarks.private_data") / "hard_product_texts.toml"
    lists: dict[str, list[str]] = tomllib.loads(file.read_text("utf-8"))
    unseen = lists.pop("unseen")
    if part == "unseen":
        return unseen
    is_held_out = part == "held_out"
    return [text for texts in lists.values() for number, text in enumerate(texts) if (number % 3 == 2) == is_held_out]


def is_changed(text: str) -> bool:
    """Whether a page that shows a product text, in a paragraph and as a link, loses any of it."""
    page = f"<body><p>{html.escape(text)}</p><a href=x>{html.escape(text)}</a></body>"
    return simplify(page) != simplify(page, private_data=False)


def is_left(case: Planted) -> bool:
    """Whether some of the secret, or the name of an element made of it, is left where it was planted."""
    if case.place == "url":
        cleaned = unquote_plus(remove_from_url(case.text))
    elif case.place in ("rationale", "goal"):
        cleaned = remove_from_text(case.text)
    else:
        cleaned = html.unescape(simplify(case.text).html)
        if slug(case.secret) and slug(case.secret) in " ".join(re.findall(r' name="([^"]*)"', cleaned)):
            return True
    return any(_stands_in(part, cleaned) for part in case.parts())


def _stands_in(part: str, text: str) -> bool:
    return (
        re.search(rf"(?<![^\W_]){re.escape(part)}(?![^\W_])" if part[0].isascii() else re.escape(part), text)
        is not None
    )


def _made_up(faker: Faker, kind: Kind) -> str:
    match kind:
        case "name":
            return str(faker.name())
        case "address":
            return str(faker.address())
        case "phone":
            return str(faker.phone_number())
        case "card":
            return str(faker.credit_card_number())
        case "email":
            return str(faker.email())


def _filled(template: str, secret: str, place: Place, draw: random.Random) -> str:
    if place == "url":
        return template.format(draw.choice((quote, quote_plus))(secret))
    if place in ("rationale", "goal"):
        return template.format(secret)
    page = _PAGE if place == "header" else _HOME
    return page.format(template.format(html.escape(secret)))
