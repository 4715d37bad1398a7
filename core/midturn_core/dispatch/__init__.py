"""Running the tool uses of one model response, from the gate to the report.

``DefaultParallelToolDispatcher.dispatch`` gets a ``ToolBatch`` and gives a ``BatchOutcome`` with one
result per call, in call order. Where to look, in the order in which a batch goes through it:

- ``config``        ``ToolConcurrencyConfig``: whether and how far calls run together
- ``types``         verdict, report and outcome: what others see of a batch
- ``runner``        what the dispatcher needs of whoever prepares and runs one call
- ``gate``          pure: may these calls run together, and if not, why; ``segments`` splits mixed ones
- ``dispatcher``    takes batches, lends them slots and workers, closes; ``early`` opens the batch of
                    a message that still streams
- ``batch``         one batch: starts its calls, cuts them, joins them, adds up; ``clock`` is its time
                    limit, ``event_hold`` keeps the events of what runs before the batch has begun
- ``call``          one call through its stages; ``call_scope`` is what it is given, ``call_record``
                    what is known of it, ``completion`` its stage after the slot
- ``supervision``   obeys the limit of a running tool and the reasons to stop it; ``reaction`` decides
                    purely what a reason means for it
- ``slots``         the permits of one batch, ``fair_slots`` those of all, in turns between contexts
- ``pool``          the threads for what blocks
- ``results``       the results a call gets without an answer of its tool
- ``report``        what a batch took and would have taken; ``speedup`` adds it up for a session
"""
