"""Accessibility trees as BrowserGym writes them, by hand."""

from replay_sessions import find_elements
from replay_sessions.importers.mapped.accessibility_tree import accessibility_tree

PAGE = r"""
RootWebArea "Bob's kettles", focused
	[a12] banner '', visible
		[a13] link "Bob's shop", clickable, visible
			[a14] heading "Bob's shop"
		[20] combobox 'Sort by' value='Price', clickable, visible, hasPopup='menu', expanded=False
			[21] option 'Price', selected=True
			[22] option 'Name', selected=False
	[30] generic, clickable, visible
		StaticText 'In stock only'
	[31] link 'Red \'n\' blue <b>', visible
		[32] button 'Buy'
		[33] link 'Details'
	[40] checkbox 'Gift', checked='false'
	[41] image 'A kettle'
	[42] paragraph ''
		StaticText 'Was $12.00 & more'
a line of no node
"""


def test_a_page_of_browsergym():
    assert [(e.name, e.text, e.accepts) for e in find_elements(accessibility_tree(PAGE))] == [
        ("a13", "Bob's shop", "click"),
        ("20", "Sort by", "type"),
        ("21", "Price", "click"),
        ("22", "Name", "click"),
        ("30", "In stock only", "click"),
        ("31", "Red 'n' blue <b> Buy Details", "click"),
        ("32", "Buy", "click"),
        ("33", "Details", "click"),
        ("40", "Gift", "click"),
    ]


def test_texts_stay_and_are_not_repeated():
    html = accessibility_tree(PAGE)
    assert html.startswith("<title>Bob's kettles</title>")
    assert html.count("Bob's shop") == 1
    assert "<p>a line of no node</p>" in html
    assert "Was $12.00 &amp; more" in html
    assert '<img alt="A kettle">' in html
    assert 'value="Price"' in html


def test_indents_may_be_spaces():
    assert accessibility_tree("[1] list ''\n    [2] button 'A'\n[3] button 'B'") == (
        '<div><button name="2">A</button></div><button name="3">B</button>'
    )


def test_states_are_written_as_raw_pages_have_them():
    tree = """[1] checkbox 'Gift', checked='true', disabled=True
[2] checkbox 'checked=True', checked='false'
[3] radio 'Navy' checked: true
[4] option 'Price', selected=True
[5] button 'Buy' disabled: True
[6] tab 'More' expanded: True selected: False
[7] checkbox 'All' checked: mixed"""
    html = accessibility_tree(tree)
    assert '<input type="checkbox" name="1" placeholder="Gift" checked disabled>' in html
    assert 'placeholder="checked=True">' in html
    assert '<input type="radio" name="3" placeholder="Navy" checked>' in html
    assert '<span name="4" role="option" aria-selected="true">Price</span><button name="5" disabled>' in html
    assert '<span name="6" role="tab" aria-expanded="true">' in html
    assert 'placeholder="All" aria-checked="mixed"' in html
