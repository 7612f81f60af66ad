"""One model over several devices: a DTensor mesh of batch x model."""
