"""The demo shops as real pages in a browser, with the recorder in them and the collector beside them.

    ShopVisit ─► visits (where each tab of a visit is) ─► dressing (simplified page -> web page) ─► server ─► browser
    recorder ─► collector ─► DIR/VISIT.jsonl ─► server (the visit as the env shows it)

    shop-r1 shop --out recordings

A web page has exactly the content of the shop's simplified page, and what can be acted on is called the same once
the web page is simplified (simplify/recipes/demo_shop.toml): so a visit in a browser, recorded and imported, can be
held against the shop itself.
"""
