"""Unpacks the Debian packages that the data sets are made of, so that neither their tests nor their scripts wait for a download."""

import cache
import photographs
import text

cache.packages([*photographs.LICENCES, *text.MANUALS])
