"""Adapters that give our steps and reward to other trainers, which scale beyond one machine."""
