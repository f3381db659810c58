"""Logins at a Pacemaker: who logs in how, by SASL's DIGEST-MD5 or by Kerberos."""
