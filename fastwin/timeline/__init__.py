"""Pictures of windows: what arrived, what fired, and where the watermark stood."""
