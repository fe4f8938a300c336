"""Models of structured outputs for `StructuredSVC`: joint feature map, loss and exact maximiser.

- `joint_model`: `JointModel`, the base of models of a user's own
- `chain_model`: `ChainModel`, sequences of labels
- `multi_label_model`: `MultiLabelModel`, sets of labels

Public through `maxmargin.models`.
"""
