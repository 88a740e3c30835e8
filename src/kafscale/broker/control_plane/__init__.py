"""The broker's side of the control plane."""
