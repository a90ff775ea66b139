"""What lets somebody in or names a person by number: in addresses of pages, attributes and texts."""

import pytest

from replay_sessions.private_data import find_in_text, find_private_data, remove_from_url

_JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiIsIm5hbWUiOiJBbm5hIn0.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"


@pytest.mark.parametrize(
    ("url", "cleaned"),
    [
        ("https://shop.example/cb#access_token=abc123&state=9", "https://shop.example/cb#access_token=[secret]&state=9"),
        (f"https://shop.example/in?id_token={_JWT}", "https://shop.example/in?id_token=[secret]"),
        (f"https://shop.example/t/{_JWT}/cart", "https://shop.example/t/[secret]/cart"),
        (f"https://shop.example/?next={_JWT}", "https://shop.example/?next=[secret]"),
        ("https://shop.example/cart;jsessionid=1F2E3D4C.node1?page=2", "https://shop.example/cart;jsessionid=[secret]?page=2"),
        ("/reset?reset_token=9f8a7b&lang=en", "/reset?reset_token=[secret]&lang=en"),
        ("https://anna:hunter2@shop.example/cart", "https://[secret]@shop.example/cart"),
        ("//user:pass@shop.example/", "//[secret]@shop.example/"),
        ("/f.jpg?X-Amz-Signature=0a1b2c&w=200", "/f.jpg?X-Amz-Signature=[secret]&w=200"),
        ("/f.jpg?sig=0a1b2c&w=200", "/f.jpg?sig=[secret]&w=200"),
        ("/api?apikey=AIzaSyA1&client_secret=x9", "/api?apikey=[secret]&client_secret=[secret]"),
        ("/reset?code=q7Yt4Rw2Zp9Lk3Nd8Hs1&coupon=SUMMER20", "/reset?code=[secret]&coupon=SUMMER20"),
        ("/in?password=open+it&otp=123456", "/in?password=[secret]&otp=[secret]"),
        ("/x?PHPSESSID=abcdef&sid=7f7f7f7f", "/x?PHPSESSID=[secret]&sid=[secret]"),
    ],
)  # fmt: skip
def test_credentials_in_an_address_go(url: str, cleaned: str) -> None:
    assert remove_from_url(url) == cleaned


@pytest.mark.parametrize(
    "url",
    [
        "/search?q=secret+garden&page=2",
        "/c/design?code=SUMMER20&session=spring&key=color&token_ring=1",
        "https://shop.example:8080/a@b/c",
        "/p/passport-cover?author=2&passport=1&pin_size=3",
    ],
)
def test_what_only_reads_like_a_credential_stays(url: str) -> None:
    assert remove_from_url(url) == url


@pytest.mark.parametrize(
    ("text", "kind", "secret"),
    [
        ("Account DE89 3704 0044 0532 0130 00", "card", "DE89 3704 0044 0532 0130 00"),
        ("IBAN: GB29NWBK60161331926819", "card", "GB29NWBK60161331926819"),
        ("Date of birth: 12 March 1984", "birth_date", "12 March 1984"),
        ("Geburtsdatum 03.11.1979", "birth_date", "03.11.1979"),
        ("Date de naissance : 3 août 1990", "birth_date", "3 août 1990"),
        ("Fecha de nacimiento: 1990-05-17", "birth_date", "1990-05-17"),
        ("生年月日：1990年5月17日", "birth_date", "1990年5月17日"),
        ("SSN: 078-05-1120", "id_number", "078-05-1120"),
        ("Steuer-ID: 86 095 742 719", "id_number", "86 095 742 719"),
        ("N° de sécurité sociale : 2 55 08 14 168 025 38", "id_number", "2 55 08 14 168 025 38"),
        ("2 55 08 14 168 025 38", "id_number", "2 55 08 14 168 025 38"),
        ("DNI 12345678Z", "id_number", "12345678Z"),
        ("Codice fiscale RSSMRA85T10A562S", "id_number", "RSSMRA85T10A562S"),
        ("RSSMRA85T10A562S", "id_number", "RSSMRA85T10A562S"),
        ("PESEL: 44051401359", "id_number", "44051401359"),
        ("Olá, o CPF 529.982.247-25 foi confirmado", "id_number", "529.982.247-25"),
        ("Aadhaar 2341 2341 2346", "id_number", "2341 2341 2346"),
        ("Passport number: C01X00T47", "id_number", "C01X00T47"),
    ],
)  # fmt: skip
def test_numbers_that_mean_one_person_go(text: str, kind: str, secret: str) -> None:
    assert (kind, secret) in [(removal.kind, removal.text) for removal in find_private_data(f"<p>{text}</p>")]


@pytest.mark.parametrize(
    "text",
    [
        "Published 12 March 1984",
        "Model 078-05-1120 filter",
        "EAN 4405140135912",
        "Ref 12345678A",  # not the letter of that number
        "529.982.247-24",  # not its check digits
        "ID: 4411",
        "DE89 3704 0044 0532 0130 01",
        "Birthday card, 21 x 15 cm",
        "Passport holder RFID 2024",
    ],
)
def test_other_numbers_and_dates_stay(text: str) -> None:
    assert find_private_data(f"<p>{text}</p>") == []


def test_secrets_in_attributes_of_a_page_go() -> None:
    page = f'<a href="/x;jsessionid=AB12CD34?a=1">Cart</a><img src="/i.png?sig=ab12cd34"><form action="/t/{_JWT}">'
    assert [removal.kind for removal in find_private_data(page)] == ["secret"] * 3


def test_the_number_in_a_sentence_of_a_shopper_goes() -> None:
    assert find_in_text("my social security number is 078-05-1120") == ["id_number"]
