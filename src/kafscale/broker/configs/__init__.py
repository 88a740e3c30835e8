"""Topic and broker configurations, as DescribeConfigs and AlterConfigs see them."""
