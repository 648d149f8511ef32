"""Speed: what training, answering and growing cost on a base, against the published way in the same run."""
