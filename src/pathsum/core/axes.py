"""The axis names in shape annotations, with their meanings and the symbols of Elhage et al. 2021.

``batch``: windows evaluated together
``all``: every window of a text
``pos``: position in a window, 0 is the beginning-of-sequence token (n_context in the paper)
``copies``: windows of repeated random tokens
``window``: n_ctx + 1 tokens: BOS, then text; as only axis: window index
``query``: position that attends (destination)
``key``: position attended to (source)
``vocab``: token identity, where it is read or predicted (n_vocab in the paper)
``out``: token identity as an output logit (n_vocab in the paper)
``source``: token identity of the key
``distance``: query − key, from 0
``wave``: index of a sinusoid that encodes position
``d_model``: residual stream coordinate
``read``: residual coordinate that a matrix reads (its column index) (d_model in the paper)
``write``: residual coordinate that a matrix writes (its row index) (d_model in the paper)
``d_head``: coordinate inside a head
``head``: head within a layer
``early``: head of an earlier layer (h1 in the paper)
``late``: head of a later layer (h2 in the paper)
``edge``: pair of an early and a late head, with a kind: Q, K or V
``document``: generated document
``word``: position of a word in a document, from 0
``one``: a batch of a single window
``pair``: counted pair of tokens
``path``: path through heads; ``path_`` is a second such axis
``part``: summand of the residual stream: embedding or write of one head
``group``: group of routes, by hops or by offset (docs/framework.md §2.5)
``model``: index of a model, where models are stacked and trained at once
``place``: pair (window, position), flattened to one axis
``trial``: one intervention: what is replaced, and by which method
``kind``: which of several counts or sums
``step``: checkpoint of a training
``rank``: inner axis of a thin product; ``rank_`` is a second such axis
``top``: index in a list of the largest values
``token``: position in a token stream, or token identity
``row``: row of a table of logits, one per prediction
``rows``: any matrix's rows
``columns``: any matrix's columns
``shape``: any shape; ``rest``: any leading axes, ``last``: any last axis
``d``: coordinate of any vector that is moved along a path
``some``: a selection from a longer axis
``n``: any number of things
``m``: any other number of things
``k``: number of entries kept
"""
