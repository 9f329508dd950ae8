return { restart = { displayName = "Restart", iconClass = "fa fa-fw fa-redo", disabled = obj.spec.paused == true } }
