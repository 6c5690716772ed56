"""Estimates from random regions, with a certificate."""
