"""How a model attends over session trees: ways of one protocol, each equal to unpacked rows.

merged         each stretch of a trunk by all replies behind it at once, parts put together: CPU, where pages are long
structured     each trunk causally, each step's replies against the trunk up to their fork: CPU, and wherever torch runs
flex           torch's FlexAttention over the whole pack in one kernel: any CUDA device
cudnn          cudnn.flex_attention, likewise: bfloat16 on Hopper and newer
depth_first    one stretch of a trunk and one step's replies at a time: where memory is short
"""
