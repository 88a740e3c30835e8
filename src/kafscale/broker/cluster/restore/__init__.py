"""Repairs metadata that were restored from a backup."""
