"""Projects of streamparse, read and never imported: their folders, what of them runs here, and native classes."""
