// SPDX-License-Identifier: Apache-2.0
// The button for light, dark and the system's choice, where the theme's own script did not run.
window.addEventListener("load", () => {
    const page = document.documentElement;
    if (!page.classList.contains("no-js")) {
        return;
    }
    page.classList.remove("no-js");
    const isDark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const order = isDark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    for (const button of document.getElementsByClassName("theme-toggle")) {
        button.addEventListener("click", () => {
            const next = order[(order.indexOf(document.body.dataset.theme) + 1) % order.length];
            document.body.dataset.theme = next;
            localStorage.setItem("theme", next);
        });
    }
});
