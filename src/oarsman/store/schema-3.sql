-- One word per place: local, ssh, kube.
UPDATE jobs SET engine = 'local' WHERE engine = 'embedded';
