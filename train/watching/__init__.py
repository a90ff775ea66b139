"""Watching a run from elsewhere: TensorBoard, Weights & Biases, trackio. Each is imported only when it is asked for."""
