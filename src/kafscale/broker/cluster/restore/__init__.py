"""Repairs metadata that was restored from a backup."""
