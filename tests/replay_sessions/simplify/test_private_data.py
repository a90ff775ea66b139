"""Private data go from a page before its elements get names; all else on it stays."""

from replay_sessions.simplify import Recipe, simplify
from replay_sessions.simplify.recipes import Rule


def test_a_value_goes_from_texts_attributes_title_and_names():
    page = simplify(
        "<title>anna@example.org</title><p>anna@example.org</p><a href=x>Lists of anna@example.org</a>"
    ).html
    assert "anna" not in page
    assert 'name="lists_of_email"' in page


def test_only_the_flag_leaves_private_data_in():
    page = "<p>anna@example.org</p><input name=first_name value=Anna><p itemprop=review><a itemprop=author>Bo Ek</a>"
    for keeps in (False, True):
        html = simplify(page, private_data=not keeps).html
        assert all((value in html) == keeps for value in ("anna@example.org", "Anna", "Bo Ek"))


def test_typed_text_goes_and_the_label_of_its_field_stays():
    page = simplify(
        "<input autocomplete=given-name aria-label='First name' value=Anna>"
        "<input type=email placeholder=you@example.org value='Your e-mail'>"
        "<textarea name=shipping_address>Orchard Lea 1</textarea>"
    ).html
    assert 'value="[name]" aria-label="First name"' in page
    assert 'value="Your e-mail" placeholder="you@example.org"' in page
    assert ">[address]</textarea>" in page


def test_all_that_a_private_place_shows_goes():
    recipe = Recipe("shop", (Rule(select=".who", private="name"),))
    links = "<a href=/users/ek title='Anna Ek'>Anna</a><a href=x>Anna</a><img src=x alt='Anna Ek'>"
    page = simplify(f"<div class=who>{links}</div><p>Anna</p>", recipe).html
    assert "ek" not in page.lower()
    assert page.count("[name]") >= 2
    assert "<p>Anna</p>" in page


def test_the_lines_of_a_shop_stay():
    page = simplify("<a href='tel:+493012345678'>+49 30 12345678</a><p>+49 30 12345678</p><p>+49 30 12345679</p>").html
    assert page.count("+49 30 12345678") == 2
    assert "12345679" not in page


def test_other_texts_stay():
    body = "<header><div class=user-name>Order History</div></header><p>Hello, Anna</p><p>21 Jump Street</p>"
    body += (
        "<p itemprop=author>Bo Ek</p><p itemprop=telephone>+49 30 123456</p><input type=tel aria-label=Amount value=1>"
    )
    assert simplify(body) == simplify(body, private_data=False)


def test_contact_lines_of_the_page_s_own_footer_stay_wherever_they_are_repeated():
    page = simplify(
        "<main><p>Otto: otto@shop.example</p><p>You: anna@example.org</p><article>Nice<footer>eve@example.org</footer>"
        "</article></main><footer>Ask <b>otto@shop.example</b> or +49 40 555222</footer>"
    ).html
    assert "Otto: otto@shop.example" in page and "+49 40 555222" in page
    assert "anna" not in page and "eve" not in page
