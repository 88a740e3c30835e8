"""PACKAGE"""
