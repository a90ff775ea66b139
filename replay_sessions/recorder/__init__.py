"""Records visits to a shop: rrweb's own recorder in its pages, and a collector that loses no acknowledged data.

    a shop's page ─► rrweb's `record` ─► snippet (ids, consent, masks, queue) ─► POST ─► collector ─► DIR/SESSION.jsonl

The modules in the order of the data:

    rrweb_bundle   rrweb's recorder, fetched by npm at first use; it is not part of this project
    snippet/       the scripts that run beside it in a shop's pages
    batches        parses and checks the batches of events that a page posts
    session_file   the append-only file of one session
    journal        writes the batches of many sessions to their files before they are acknowledged
    collector      serves this over HTTP and decides who may post, and how much

    shop-r1 record --out recordings
    shop-r1 import rrweb recordings --terminate-at-end --out stores/mine
"""
