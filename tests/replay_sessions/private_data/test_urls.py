"""Credentials and private parameters in addresses of pages."""

import time

import pytest

from replay_sessions.private_data import kinds_in_url, remove_from_url, without_credentials

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
        ("/in?return_to=%2Freset%3Ftoken%3Dab12&x=1", "/in?return_to=%2Freset%3Ftoken%3D[secret]&x=1"),
        ("/in?to=%252Freset%253Fpassword%253Dab", "/in?to=%252Freset%253Fpassword%253D[secret]"),
        ("/in?to=https%3A%2F%2Fanna%3Apw%40shop.example%2F", "/in?to=https%3A%2F%2F[secret]%40shop.example%2F"),
        (f"/t/file-{_JWT}?x=1", "/t/file-[secret]?x=1"),
    ],
)  # fmt: skip
def test_credentials_in_an_address_go(url, cleaned):
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
def test_words_that_read_like_a_credential_stay(url):
    assert remove_from_url(url) == url


@pytest.mark.parametrize(
    ("url", "cleaned"),
    [
        ("https://x.example/u?ref=a&first_name=Anna+Maria", "https://x.example/u?ref=a&first_name=[name]"),
        ("/search?q=write+to+anna%40example.org&page=2", "/search?q=write+to+[email]&page=2"),
        ("/pay?n=4111111111111111#top", "/pay?n=[card]#top"),
        ("/search?q=tom+ford&page=2&sku=0%20986%20494%20123", "/search?q=tom+ford&page=2&sku=0%20986%20494%20123"),
        ("/in?to=%2Fa%3Femail%3Danna%2540example.org%26p%3D2", "/in?to=%2Fa%3Femail%3D[email]%26p%3D2"),
        ("/in?to=%2Fcart%3Fp%3D2&q=a%2Bb", "/in?to=%2Fcart%3Fp%3D2&q=a%2Bb"),
        ("/user/settings?first=1&addressbook=open", "/user/settings?first=1&addressbook=open"),
    ],
)
def test_parameters_lose_private_values_alone(url, cleaned):
    assert remove_from_url(url) == cleaned


def test_masked_values_in_an_address_are_not_counted():
    assert kinds_in_url("/in?email=anna%40example.org&token=9f8a7b") == ["email", "secret"]
    assert kinds_in_url("/in?email=[email]") == []


def test_a_secret_in_a_redirect_goes_where_private_data_is_kept_too():
    assert (
        without_credentials("/in?to=%2Fr%3Ftoken%3Dab%26m%3Da%40b.cz")
        == "/in?to=%2Fr%3Ftoken%3D[secret]%26m%3Da%40b.cz"
    )


@pytest.mark.parametrize("part", ["eyJ", "-eyJ", "eyJ-", "eyJa.", "a-eyJaaaaaaaaa-"])
def test_the_search_for_tokens_takes_time_in_proportion_to_the_address(part):
    start = time.process_time()
    without_credentials("https://shop.example/?x=" + part * (96_000 // len(part)))
    assert time.process_time() - start < 1
