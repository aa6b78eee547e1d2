"""The paper's theory as things that can be checked: definitions, certificates, violations."""
