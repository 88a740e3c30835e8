"""The CustomResourceDefinitions, generated from the classes in `kafscale.operator.spec`."""
