"""Reconciles a cluster with its `KafscaleCluster` resource, and reports its status."""
