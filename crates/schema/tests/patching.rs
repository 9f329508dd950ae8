//! JSON patch, merge patch and strategic merge patch.

mod patching {
    mod json_patch;
    mod merge_patch;
    mod strategic;
}
