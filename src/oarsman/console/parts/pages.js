// What pages do in the browser by themselves.
window.oarsman = (() => {
    // What is secret goes to the API from here, so that the cookie comes back to the browser and no page ever holds it.
    const send = (method, address, body) => fetch(address, {
        method, credentials: 'same-origin',
        headers: {'Content-Type': 'application/json', 'X-Oarsman': '1'},
        body: body && JSON.stringify(body),
    });
    const problemOf = (answer) => answer.json().catch(() => ({}));
    let leaving = false;  // what was asked for here ends the session, and goes on from there by itself
    let reloading;

    // Of a moment, in milliseconds since 1970: "2026-01-31 23:59:59.999" where the reader is, and in UTC.
    const utc = (moment) => new Date(moment).toISOString().slice(0, -1).replace('T', ' ');
    const local = (moment) => utc(moment - new Date(moment).getTimezoneOffset() * 60000);

    return {
        utc, local,

        // Changes parts of the address; null takes one out. `turned`: a step that the reader can go back.
        query(parts, turned) {
            const asked = new URLSearchParams(location.search);
            for (const [name, value] of Object.entries(parts)) value === null ? asked.delete(name) : asked.set(name, value);
            const address = location.pathname + (asked.size ? `?${asked}` : '');
            if (address !== location.pathname + location.search) history[turned ? 'pushState' : 'replaceState']({}, '', address);
        },

        // `words`: what the API may answer, in the reader's language
        async logIn(address, words) {
            const fields = [...document.querySelectorAll('.oarsman-login input[name]')];
            const answer = await send('POST', address, Object.fromEntries(fields.map((field) => [field.name, field.value])));
            if (answer.ok) {
                const asked = new URLSearchParams(location.search).get('to') || '/';
                const wanted = URL.canParse(asked, location.origin) ? new URL(asked, location.origin).href : '/';
                location.assign(wanted.startsWith(location.origin + '/') ? wanted : '/');
                return;
            }
            const problem = await problemOf(answer);
            document.querySelector('.oarsman-login-trouble').textContent =
                words[problem.detail] || problem.detail || answer.statusText;
        },

        async changePassword(words) {
            const field = (name) => document.querySelector(`.oarsman-password input[name=${name}]`);
            const said = document.querySelector('.oarsman-password-said');
            const wanted = {current: field('current').value, new: field('new').value};
            leaving = true;
            const answer = await send('PUT', '/api/v1/me/password', wanted);
            if (answer.ok) {
                said.textContent = said.dataset.done;
                reloading = setTimeout(() => location.reload(), 1500);
                return;
            }
            leaving = false;
            const problem = await problemOf(answer);
            const told = (problem.errors || []).map((e) => words[e.message] || e.message).join('; ');
            said.textContent = told || words[problem.detail] || problem.detail || answer.statusText;
        },

        async logOut() {
            leaving = true;
            clearTimeout(reloading);
            await send('DELETE', '/api/v1/session');
            location.assign('/login');
        },

        // The server says so of the session that this page is of.
        ended() {
            if (!leaving) location.reload();
        },

        nextMatch(step) {
            const button = document.querySelector(`.oarsman-log-find [data-step="${step}"]`);
            if (button) button.click();
        },

        chooseFile(largest) {
            const input = document.createElement('input');
            input.type = 'file';
            input.accept = '.yaml,.yml,.json';
            input.onchange = async () => {
                const file = input.files[0];
                if (file) emitEvent('oarsman-file', file.size <= largest ? await file.text() : '');
            };
            input.click();
        },

        // Not every page may use the clipboard, such as one without TLS; what is selected can be copied everywhere.
        async copy(place, said) {
            const text = document.querySelector(place), told = document.querySelector(said);
            getSelection().selectAllChildren(text);
            const asked = navigator.clipboard ? navigator.clipboard.writeText(text.textContent.trim()) : Promise.reject();
            if (await asked.then(() => true, () => document.execCommand('copy'))) told.textContent = told.dataset.done;
        },

        // The next question, not the top of the page, is what a keyboard wants after "Next".
        focusFirstField() {
            setTimeout(() => {
                const fields = [...document.querySelectorAll('.oarsman-steps input, .oarsman-steps textarea')];
                const field = fields.find((one) => one.offsetParent !== null);
                if (field) field.focus();
            }, 350);
        },

        // Once the step that it is in is shown.
        focusField(name) {
            setTimeout(() => document.querySelector(`.asks-for-${name} :is(input, textarea)`)?.focus(), 350);
        },

        // The name is a link, for the keyboard; a click elsewhere in the row means the same.
        openRow(event, row) {
            if (event.target.closest('a, button, .q-checkbox') || getSelection().toString()) return;
            location.assign(row.href);
        },

        // Where there is no room for the names of the pages, they are below one another and shown when asked for.
        switchMenu(event) {
            const shown = document.querySelector('.oarsman-nav').classList.toggle('is-open');
            event.currentTarget.setAttribute('aria-expanded', shown);
        },

        switchTheme(kept) {
            const theme = document.body.classList.contains('body--dark') ? 'light' : 'dark';
            localStorage.setItem(kept, theme);
            emitEvent('oarsman-theme', theme);
        },
    };
})();

// Buttons that are drawn anew take the keyboard along: to the same one, else to the one in its place, and never to one that
// deletes.
(() => {
    let left = null;  // of the button that the keyboard was at: its row, what it says, its place
    const buttons = (row) => [...row.querySelectorAll('a.q-btn, button')];
    const follow = (row) => {
        if (left?.row !== row || document.activeElement !== document.body) return;
        const found = buttons(row), there = found[left.place];
        const next = found.find((one) => one.textContent === left.says)
            || (there && !there.matches('.text-negative') ? there : found[0]);
        next?.focus();
    };
    document.addEventListener('focusin', ({target}) => {
        const row = target.closest('.oarsman-actions');
        if (row) {
            left = {row, target, says: target.textContent, place: buttons(row).indexOf(target)};
            if (!row.dataset.watched) new MutationObserver(() => follow(row)).observe(row, {childList: true});
            row.dataset.watched = true;
        } else if (!target.closest('.q-dialog')) left = null;
    });
    document.addEventListener('pointerdown', ({target}) => { if (!target.closest('.oarsman-actions, .q-dialog')) left = null; });
})();

window.addEventListener('popstate', () => emitEvent('oarsman-back', new URLSearchParams(location.search).get('tab') || ''));

// Moments in the reader's time zone, and in UTC at the pointer. `at`: milliseconds since 1970, several with commas;
// `said`: a sentence with {} in the place of each; `brief`: without year and seconds.
customElements.define('oarsman-time', class extends HTMLElement {
    static observedAttributes = ['at', 'said', 'brief'];

    attributeChangedCallback() {
        const moments = (this.getAttribute('at') || '').split(',').filter(Boolean).map(Number);
        const from = this.hasAttribute('brief') ? [5, 16] : [0, 19];
        const told = moments.map((moment) => oarsman.local(moment).slice(...from));
        this.textContent = (this.getAttribute('said') || '{}').replace(/\{\}/g, () => told.shift() || '');
        this.title = moments.map((moment) => `${oarsman.utc(moment).slice(0, 19)} UTC`).join(', ');
    }
});
