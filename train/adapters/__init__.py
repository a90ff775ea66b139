"""Our steps and our reward for trainers that go past one machine."""
