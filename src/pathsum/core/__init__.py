"""What every room shares: named axes, frozen weights, low-rank products, files."""
