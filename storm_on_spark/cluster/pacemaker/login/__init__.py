"""Logins at a Pacemaker: SASL's DIGEST-MD5 and Kerberos, with the JAAS files that Storm's logins stand in."""
