"""Serves the demo shops as web pages to a browser, with the recorder in the pages and a collector for the recordings.

    ShopVisit ─► Visits (the pages of each visit) ─► dressing (simplified page -> web page) ─► server ─► browser
    recorder ─► collector ─► DIR/VISIT.jsonl ─► server (the visit as the env shows it)

    shop-r1 shop --out recordings

A web page has exactly the content of the shop's simplified page. If it is simplified (simplify/recipes/demo_shop.toml),
its elements have the same names again. So a recorded and imported visit can be compared with the shop itself.
"""
