"""What a broker does when the control plane asks: the broker's side of `kafscale.control_plane`."""
