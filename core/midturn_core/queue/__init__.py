"""The one queue of everything a person types while the agent works.

- ``types``, ``events``   an input, a selection of inputs, and what is told when one changes
- ``manager``             what producers and consumers use; ``fan_out`` tells its listeners,
                          ``barriers`` is what leaves together and what may not overtake what,
                          ``holding`` what holding and editing make of an input,
                          ``expiry`` and ``edits`` what happens to rows that wait,
                          ``turn_gate`` the end of a turn, ``rewake`` inputs at a time to come
- ``reminder``            how an input stands in the history; ``attachments`` its pictures
- ``listeners``, ``metrics``, ``telemetry``, ``receipts``   observers, one for each purpose
- ``repository``          what a store must do; ``memory``, ``sqlite`` and ``redis`` do it.
                          ``sqlite_*`` and ``redis_*`` are parts of theirs, ``record`` the form in
                          which both keep an input, ``claim_owner`` who is delivering one
- ``mirror``              keeps the queue of a session in such a store: ``leftovers`` at the start,
                          ``write_behind`` on the way there, ``store_follower`` on the way back;
                          ``take_over`` and ``reconcile`` make memory equal to the store,
                          ``mirror_parts`` is what they share, ``mirror_hooks`` whom they tell,
                          ``outside`` what they do not trust
- ``store_client``        the store as a session uses it, on a ``store_worker`` through a
                          ``store_link``; ``claims`` is what a delivery asks of it, ``open_store``
                          which store it is
"""
