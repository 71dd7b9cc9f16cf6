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

    return {
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
